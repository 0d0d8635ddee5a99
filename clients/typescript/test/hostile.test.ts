/** The library and a server that does not behave. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Agent, ConnectionEnded, Problem, ProtocolError, Server, Stopped, type WebSocketLike, digest, parse, watch } from "../src/index.js";
import { readEvents } from "../src/events.js";
import { delays } from "../src/server.js";

type Sent = { type: string; [name: string]: unknown };

/** A WebSocket whose server is a function of each message. */
function fake(serve: (m: Sent, socket: FakeSocket, connection: number) => void): { server: Server; sockets: FakeSocket[] } {
  const sockets: FakeSocket[] = [];
  class Socket extends FakeSocket {
    constructor() {
      super();
      const n = sockets.push(this) - 1;
      this.serve = (m) => serve(m, this, n);
      queueMicrotask(() => this.onopen?.({}));
    }
  }
  return { server: new Server("http://127.0.0.1:1", { WebSocket: Socket, timeout: 2000 }), sockets };
}

class FakeSocket implements WebSocketLike {
  onopen: ((event: any) => unknown) | null = null;
  onmessage: ((event: any) => unknown) | null = null;
  onerror: ((event: any) => unknown) | null = null;
  onclose: ((event: any) => unknown) | null = null;
  readonly sent: Sent[] = [];
  closed = false;
  serve: (m: Sent) => void = () => undefined;

  send(data: string): void {
    const m = JSON.parse(data) as Sent;
    this.sent.push(m);
    queueMicrotask(() => this.serve(m));
  }
  close(): void {
    this.closed = true;
    queueMicrotask(() => this.end(1000));
  }
  push(...messages: unknown[]): void {
    for (const m of messages) this.onmessage?.({ data: typeof m === "object" ? JSON.stringify(m) : m });
  }
  end(code: number): void {
    this.onclose?.({ code, reason: "" });
  }
}

const good = digest("a", parse('{"visible_entities":{},"visible_relationships":{}}'));
const welcome = { type: "welcome", protocol: 1, session: "s", agent: "a", resumed: false, window: 64, heartbeat_ms: 15_000, max_message: 1 << 20 };
const full = [{ op: "replace", path: "/visible_entities", value: {} }, { op: "replace", path: "/visible_relationships", value: {} }];
const observation = (view_seq: number, context_digest: string, more: object = {}): object => ({
  type: "observation", view_seq, patches: [], context_digest, schema_version: "1.0.0", at_ms: 0, ...more,
});

describe("a server that does not behave", () => {
  test("a wrong digest, and a gap, ask for a full view", async () => {
    for (const wrong of [observation(1, "bad"), observation(9, good)]) {
      const { server, sockets } = fake((m, socket) => {
        if (m.type === "hello") socket.push(welcome, observation(0, good, { full: true, patches: full }), wrong, observation(10, good));
        if (m.type === "resync") socket.push(observation(11, good), observation(12, good, { full: true, patches: full, missed: 3 }));
      });
      const agent = await Agent.connect(server, "s", "a");
      assert.equal((await agent.observe())?.view_seq, 0);
      const seen = await agent.observe();
      assert.deepEqual([seen?.view_seq, seen?.full, seen?.missed], [12, true, 3]);
      assert.deepEqual(sockets[0]?.sent.map((m) => m.type), ["hello", "ack", "resync", "ack"]);
      agent.close();
    }
  });

  test("codes, and where it continues", async () => {
    const codes = [1011, 1006, 4008, 4005];
    const { server, sockets } = fake((m, socket, n) => {
      if (m.type === "hello") socket.push(welcome, ...(n === 0 ? [observation(7, good, { full: true, patches: full })] : []));
      if (m.type === "ack" || (m.type === "hello" && n > 0)) socket.end(codes[n] ?? 0);
    });
    const agent = await Agent.connect(server, "s", "a", { backoff: { first: 1, most: 5, tries: 10 } });
    await agent.observe();
    await assert.rejects(agent.observe(), (e) => e instanceof ConnectionEnded && e.code === 4005);
    assert.deepEqual(sockets.map((s) => s.sent[0]), [{ type: "hello" }, ...Array<Sent>(3).fill({ type: "hello", view_seq: 7 })]);
    assert.deepEqual([...delays({ first: 500, most: 3000, tries: 5 })], [500, 1000, 2000, 3000, 3000]);
  });

  test("nonsense ends the connection", async () => {
    const binary = new ArrayBuffer(1);
    for (const nonsense of ["{", "[]", '{"type":1}', '{"type":"stop"}', '{"type":"observation"}', '{"type":"outcome","req_id":"r"}', "[".repeat(100_000), binary]) {
      const { server, sockets } = fake((m, socket) => {
        if (m.type !== "hello") return;
        socket.push(welcome, { type: "a message of a later version" });
        socket.onmessage?.({ data: nonsense });
      });
      const agent = await Agent.connect(server, "s", "a");
      await assert.rejects(agent.observe(), ProtocolError);
      assert.ok(sockets[0]?.closed);
    }
  });

  test("no welcome, and silence after it", async () => {
    const none = fake(() => undefined);
    await assert.rejects(Agent.connect(none.server, "s", "a", { timeout: 20 }), ConnectionEnded);
    const silent = fake((m, socket) => {
      if (m.type === "hello") socket.push({ ...welcome, heartbeat_ms: 5 });
    });
    const agent = await Agent.connect(silent.server, "s", "a", { backoff: { first: 1, most: 1, tries: 0 } });
    await assert.rejects(agent.observe(), (e) => e instanceof ConnectionEnded && e.code === 1006);
  });

  test("a connection that is closed before it opens says nothing", async () => {
    const { server, sockets } = fake(() => undefined);
    const connecting = Agent.connect(server, "s", "a", { timeout: 1000 });
    const refused = assert.rejects(connecting, ProtocolError);
    sockets[0]?.push("{");
    await refused;
    await new Promise((resume) => setTimeout(resume, 1));
    assert.deepEqual(sockets[0]?.sent, []);
  });

  test("a stop aborts the call of the model", async () => {
    const { server } = fake((m, socket) => {
      if (m.type === "hello") socket.push(welcome);
      if (m.type === "begin") socket.push({ type: "begun", req_id: m["req_id"], context_seq: 0, context_digest: good });
      if (m.type === "tokens") socket.push({ type: "stop", req_id: m["req_id"], code: "TIMEOUT", reason: "deadline_exceeded" });
    });
    const agent = await Agent.connect(server, "s", "a");
    const generation = await agent.begin();
    assert.equal(generation.write("Well"), true);
    await assert.rejects(generation.over, Stopped);
    assert.ok(generation.signal.aborted);
    assert.throws(() => generation.write(", no"), (e) => e instanceof Stopped && !e.stale && e.code === "TIMEOUT");
    agent.close();
  });

  test("tokens do not travel in plain text", () => {
    assert.throws(() => new Server("http://sajou.example", { token: "secret" }), RangeError);
    new Server("http://sajou.example", { token: "secret", insecure: true });
    for (const url of ["ftp://x", "http://user:word@127.0.0.1", "http://127.0.0.1/?token=x"]) assert.throws(() => new Server(url), RangeError);
    assert.ok(!JSON.stringify(new Server("http://127.0.0.1", { token: "secret" })).includes("secret"));
  });

  test("streams of events", async () => {
    const read = async (...pieces: string[]): Promise<unknown[]> => {
      const found = [];
      const bytes = new TextEncoder();
      const body = new ReadableStream<Uint8Array>({
        start(c) {
          for (const p of pieces) c.enqueue(bytes.encode(p));
          c.close();
        },
      });
      for await (const e of readEvents(body)) found.push([e.name, e.data, e.id]);
      return found;
    };
    assert.deepEqual(await read(": comment\n\nid: 7\nevent: frame\ndata: a\ndata:b\n\n", "data: c\r", "\n\r\ndata: cut off"), [["frame", "a\nb", "7"], ["message", "c", "7"]]);
    assert.deepEqual(await read("da", "ta: x", "y\r\r", "\n: z\n"), [["message", "xy", ""]]);
  });

  test("a watcher connects again, and a refusal is thrown", async () => {
    const asked: (string | null)[] = [];
    const answers = [() => new Response('id: 3\ndata: {"n":3}\n\n'), () => Promise.reject(new TypeError("no network")), () => new Response("id: 4\ndata: 4\n\n"), () => new Response('{"code":"forbidden"}', { status: 403 })];
    const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
      asked.push(new Headers(init?.headers).get("Last-Event-ID"));
      return (answers[asked.length - 1] as () => Response | Promise<Response>)();
    };
    const server = new Server("http://127.0.0.1:1", { fetch: fetch as typeof globalThis.fetch });
    const seen: unknown[] = [];
    await assert.rejects(async () => {
      for await (const { data } of watch(server, "s", { backoff: { first: 1, most: 1, tries: 9 } })) seen.push(data);
    }, (e) => e instanceof Problem && e.code === "forbidden");
    assert.deepEqual([seen, asked], [[{ n: 3 }, 4], [null, "3", "3", "4"]]);
  });
});
