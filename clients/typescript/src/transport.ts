/** The two ways in which messages travel: a WebSocket, or server-sent events and POST. */

import { ConnectionEnded, Problem, ProtocolError, SajouError } from "./errors.js";
import { type Exact, type Fields, parse, stringify } from "./exact.js";
import { Message } from "./messages.js";
import { type Server, bounded, maxAnswer, problemOf } from "./server.js";
import { type ServerEvent, readEvents } from "./events.js";

/** A message that is sent. */
export interface Outgoing extends Fields {
  readonly type: string;
}

/** What a transport tells its link. */
export interface Receiver {
  message(m: Message): void;
  /** Called once, at the end. */
  ended(why: Error): void;
}

/** One connection. */
export interface Transport {
  send(m: Outgoing): void;
  close(): void;
  /** Ends the connection as a network that fails. */
  cut(): void;
}

/** A way to connect. hello is the first message; its view_seq resumes. */
export type Dial = (hello: Outgoing, to: Receiver) => Transport;

/** Connects by WebSocket. */
export function bySocket(server: Server, path: string, subprotocol: string): Dial {
  const { WebSocket } = server;
  if (WebSocket === undefined) {
    throw new SajouError("this platform has no WebSocket: give one to Server, or use Node 22, or for an agent the transport events");
  }
  const url = server.address(path);
  url.protocol = url.protocol.replace("http", "ws");
  return (hello, to) => {
    const socket = new WebSocket(url.href, subprotocol);
    let over = false;
    const end = (why: Error): void => {
      if (over) return;
      over = true;
      socket.onmessage = socket.onclose = null;
      socket.onerror = () => undefined; // ws throws what is not handled
      to.ended(why);
    };
    const refuse = (why: Error): void => {
      end(why);
      socket.close(); // with a code of its own
    };
    socket.onopen = () => {
      if (over) socket.close(); // Node 20 opens what was closed before
      else socket.send(stringify(server.token === undefined ? hello : { ...hello, token: server.token }));
    };
    socket.onmessage = ({ data }: { data: unknown }) => {
      if (typeof data !== "string") return refuse(new ProtocolError("the server sent a frame that is not text"));
      if (data.length > maxAnswer) return refuse(new ProtocolError(`the server sent a message of more than ${maxAnswer} characters`));
      try {
        to.message(Message.of(parse(data)));
      } catch (e) {
        refuse(e as Error);
      }
    };
    socket.onclose = ({ code, reason }: { code: number; reason: string }) => end(new ConnectionEnded(code === 1005 ? 1006 : code, reason));
    return {
      send: (m) => {
        if (!over) socket.send(stringify(m));
      },
      close: () => {
        end(new ConnectionEnded(1000));
        socket.close(1000);
      },
      cut: () => refuse(new ConnectionEnded(1006, "cut")),
    };
  };
}

/** Connects an agent by server-sent events and POST. path is that of the agent. */
export function byEvents(server: Server, path: string): Dial {
  return (hello, to) => {
    const stop = new AbortController();
    let over = false;
    let tokens = Promise.resolve(); // messages about generations go in order
    const end = (why: Error): void => {
      if (over) return;
      over = true;
      stop.abort();
      to.ended(why);
    };
    const receive = (value: Exact): void => {
      if (!over) to.message(Message.of(value));
    };
    const guarded = (work: () => Promise<void>): void => {
      void work().catch((e: unknown) => end(e instanceof SajouError ? e : new ConnectionEnded(1006, String(e))));
    };
    const event = ({ name, data }: ServerEvent): void => {
      const m = parse(data);
      if (name !== "close") return receive(m);
      const close = Message.of(m);
      end(new ConnectionEnded(close.number("code"), close.text("reason")));
    };
    guarded(async () => {
      const resume = hello["view_seq"] === undefined ? {} : { "Last-Event-ID": stringify(hello["view_seq"]) };
      const headers = server.headers({ Accept: "text/event-stream", ...resume });
      const answer = await server.fetch(server.address(`${path}/events`), { headers, redirect: "error", cache: "no-store", signal: stop.signal });
      if (!answer.ok || answer.body === null) throw problemOf(answer, await bounded(answer));
      for await (const e of readEvents(answer.body, stop.signal)) event(e);
      throw new ConnectionEnded(1006, "the stream ended");
    });
    /** Sends a request, and takes a refusal of it as its answer: the stream may go on. */
    const post = async (what: string, m: Outgoing): Promise<void> => {
      const media = what === "tokens" ? { media: "application/x-ndjson" } : {};
      try {
        const answer = await server.request("POST", `${path}/${what}`, what === "tokens" ? stringify(m) : m, media);
        for (const line of typeof answer === "string" ? answer.split("\n").filter(Boolean) : [answer]) receive(typeof line === "string" ? parse(line) : line);
      } catch (e) {
        if (!(e instanceof Problem)) throw e;
        receive(new Map<string, Exact>([["type", "error"], ["code", e.code || "refused"], ["detail", e.message], ["req_id", String(m["req_id"])]]));
      }
    };
    return {
      send(m) {
        if (over || m.type === "ack") return; // the connection itself slows the server
        if (m.type === "resync") return end(new ConnectionEnded(1006, "a full view needs another stream"));
        if (m.type === "intent") guarded(() => post("intents", m));
        else if (m.type === "cancel") guarded(() => post("cancel", m));
        else guarded(() => (tokens = tokens.then(() => post("tokens", m))));
      },
      close: () => end(new ConnectionEnded(1000)),
      cut: () => end(new ConnectionEnded(1006, "cut")),
    };
  };
}
