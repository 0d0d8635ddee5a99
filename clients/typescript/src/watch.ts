/** Watching a session: its entries, commands, frames or board, as they come. */

import { ConnectionEnded, Problem, SajouError } from "./errors.js";
import { parse, plain } from "./exact.js";
import { readEvents } from "./events.js";
import type { Json } from "./forms.js";
import { type Backoff, type Server, bounded, defaultBackoff, delays, problemOf } from "./server.js";

export interface WatchOptions {
  /** What is watched; entries if absent. */
  readonly feed?: "entries" | "commands" | "frames" | "board";
  /** The entry to begin with; absent: now. */
  readonly from?: number;
  /** Entries of these alone. */
  readonly kind?: string;
  readonly type?: string;
  readonly corr?: string;
  readonly backoff?: Backoff;
  /** Ends the iteration. */
  readonly signal?: AbortSignal;
}

/** Something that happened. id is where to continue behind it. */
export interface Watched {
  readonly id: string;
  readonly data: Json;
}

/** A server that sends nothing for so long, in milliseconds, is lost; it sends a comment each 15 s. */
const silence = 40_000;

/**
 * Iterates over what happens in a session until signal aborts. It connects again after a loss and
 * continues behind the last event: entries and commands come without a gap. A refusal is thrown.
 */
export async function* watch(server: Server, session: string, options: WatchOptions = {}): AsyncGenerator<Watched, void> {
  const { feed, from, kind, type, corr } = options;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ feed, from, kind, type, corr })) if (value !== undefined) query.set(name, String(value));
  const address = server.address(`${server.path(session, "live")}?${query}`);
  let last = "";
  let waits = delays(options.backoff ?? defaultBackoff);
  while (!options.signal?.aborted) {
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    options.signal?.addEventListener("abort", abort);
    let timer = setTimeout(abort, server.timeout);
    let why: unknown = new ConnectionEnded(1006, "the stream ended");
    try {
      const headers = server.headers({ Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) });
      const answer = await server.fetch(address, { headers, redirect: "error", cache: "no-store", signal: stop.signal });
      if (!answer.ok || answer.body === null) throw problemOf(answer, await bounded(answer));
      const alive = new TransformStream<Uint8Array, Uint8Array>({
        transform(piece, out) {
          clearTimeout(timer);
          timer = setTimeout(abort, silence);
          out.enqueue(piece);
        },
      });
      clearTimeout(timer);
      timer = setTimeout(abort, silence);
      for await (const event of readEvents(answer.body.pipeThrough(alive), stop.signal)) {
        waits = delays(options.backoff ?? defaultBackoff);
        last = event.id || last;
        if (options.signal?.aborted) return;
        if (event.name === "message") yield { id: event.id, data: plain(parse(event.data)) };
      }
    } catch (e) {
      const again = e instanceof Problem ? [429, 502, 503, 504].includes(e.status) : !(e instanceof SajouError);
      if (!again) throw e;
      why = e;
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", abort);
      stop.abort();
    }
    if (options.signal?.aborted) return;
    const delay = waits.next().value;
    if (delay === undefined) throw why;
    await new Promise<void>((resume) => {
      const wait = setTimeout(resume, delay);
      options.signal?.addEventListener("abort", () => (clearTimeout(wait), resume()), { once: true });
    });
  }
}
