/** A reader of server-sent events, for fetch: EventSource cannot send a token. */

import { ProtocolError } from "./errors.js";
import { maxAnswer } from "./server.js";

/** One event. name is message if the stream gives none; id is that of the last event that has one. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
  readonly id: string;
}

/**
 * Reads the events of a stream, to its end or until signal aborts. That of fetch alone is not
 * enough: Node 20 forgets it when it collects garbage while the stream is open.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, signal?: AbortSignal): AsyncGenerator<ServerEvent, void> {
  let name = "";
  let data: string[] = [];
  let id = "";
  let size = 0;
  for await (const line of readLines(body, signal)) {
    size += line.length;
    if (size > maxAnswer) throw new ProtocolError(`the server sent an event of more than ${maxAnswer} characters`);
    if (line === "") {
      if (data.length > 0) yield { name: name || "message", data: data.join("\n"), id };
      name = "";
      data = [];
      size = 0;
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line.charAt(colon + 1) === " " ? 2 : 1));
    if (field === "data") data.push(value);
    else if (field === "event") name = value;
    else if (field === "id" && !value.includes("\0")) id = value;
  }
}

async function* readLines(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<string, void> {
  const reader = body.getReader();
  const cancel = (): void => void reader.cancel().catch(() => undefined);
  signal?.addEventListener("abort", cancel);
  if (signal?.aborted) cancel();
  const decoder = new TextDecoder();
  let pieces: string[] = []; // of a line that is not complete
  let size = 0;
  let returned = false; // the piece before ended with a carriage return
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      let text = decoder.decode(value, { stream: true });
      if (returned && text.startsWith("\n")) text = text.slice(1);
      if (text !== "") returned = text.endsWith("\r");
      const lines = text.split(/\r\n|\r|\n/);
      const rest = lines.pop() ?? "";
      for (const line of lines) {
        yield pieces.join("") + line;
        pieces = [];
        size = 0;
      }
      pieces.push(rest);
      size += rest.length;
      if (size > maxAnswer) throw new ProtocolError(`the server sent a line of more than ${maxAnswer} characters`);
    }
  } finally {
    signal?.removeEventListener("abort", cancel);
    cancel();
  }
}
