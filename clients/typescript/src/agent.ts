/** An agent of a session: what it sees, what it asks for, and what it generates. */

import { ConnectionEnded, ProtocolError, Refused, RequestFailed, Stopped, TimeoutError } from "./errors.js";
import { type Exact, type Fields, digest, plain } from "./exact.js";
import type { Ended, Observation, Outcome, Stop, View } from "./forms.js";
import { type Begun, Generation } from "./generation.js";
import { Link, type LinkOptions, Pending, newId, within } from "./link.js";
import type { Message } from "./messages.js";
import { PatchError, apply } from "./patch.js";
import type { Server } from "./server.js";
import { type Outgoing, bySocket, byEvents } from "./transport.js";

export interface AgentOptions extends LinkOptions {
  /** How messages travel; a WebSocket where the platform has one. */
  readonly transport?: "websocket" | "events";
  /** Whether digests are compared; true if absent. */
  readonly verify?: boolean;
}

/** The members of an intent that may be absent. */
export interface IntentOptions {
  /** A new one if absent. */
  readonly req_id?: string;
  /** The observation that it is based on; the last one that was read if absent. */
  readonly context_seq?: number;
  readonly priority?: number;
  readonly schema_version?: string;
}

export interface GenerationOptions {
  readonly req_id?: string;
  /** The newest observation that was delivered if absent. */
  readonly context_seq?: number;
  readonly reads?: readonly string[];
  readonly classes?: readonly string[];
  readonly deadline_ms?: number;
  readonly token_budget?: number;
}

interface Request {
  readonly message: Outgoing;
  readonly answer: Pending<any>;
}

const emptyView: Exact = new Map([["visible_entities", new Map()], ["visible_relationships", new Map()]]);

/** So many observations may wait to be read; the window of the server is 64. */
const maxWaiting = 4096;

/**
 * The connection of one agent.
 *
 *     const alice = await Agent.connect(new Server(url, { token }), "village", "alice");
 *     for await (const seen of alice) {
 *       const outcome = await alice.submit("Speak", { text: "Hello." });
 *     }
 *
 * Observations arrive as deltas; observe applies them to the view in order and compares digests.
 * When the network or the server fails, the agent connects again and continues: no observation
 * is lost or comes twice, and intents without an outcome are sent again. Generations end with
 * their connection.
 */
export class Agent extends Link {
  readonly #verify: boolean;
  #view: Exact = emptyView;
  #viewSeq: number | undefined;
  #digest: string | undefined;
  #resyncing = false; // drops what comes until a full view
  #waiting: Message[] = []; // observations that observe has not read
  readonly #intents = new Map<string, Request>();
  readonly #begins = new Map<string, Request>();
  readonly #cancels = new Map<string, Request>();
  readonly #generations = new Map<string, Generation>();

  private constructor(readonly server: Server, readonly session: string, readonly agent: string, options: AgentOptions) {
    const path = server.path(session, "agents", agent);
    const events = (options.transport ?? (server.WebSocket === undefined ? "events" : "websocket")) === "events";
    super(events ? byEvents(server, path) : bySocket(server, `${path}/ws`, "sajou.agent.v1"), options.backoff, options.timeout ?? server.timeout);
    this.#verify = options.verify ?? true;
  }

  /** Connects. A refusal is ConnectionEnded or Problem. */
  static async connect(server: Server, session: string, agent: string, options: AgentOptions = {}): Promise<Agent> {
    const link = new Agent(server, session, agent, options);
    await link.start();
    return link;
  }

  /** The view after the last observation that was read. Do not change it. */
  get view(): View {
    return plain(this.#view) as unknown as View;
  }

  /** The view with exact numbers. */
  get exactView(): Exact {
    return this.#view;
  }

  /** The number of the last observation that was read; undefined before the first. */
  get viewSeq(): number | undefined {
    return this.#viewSeq;
  }

  /** Returns the next observation, or undefined if none comes in timeout milliseconds. */
  async observe(timeout = this.timeout): Promise<Observation | undefined> {
    const end = Date.now() + timeout;
    for (;;) {
      const m = this.#waiting.shift();
      if (m === undefined) {
        try {
          await this.until(() => this.#waiting.length > 0, Math.max(0, end - Date.now()), "an observation");
        } catch (e) {
          if (e instanceof TimeoutError) return undefined;
          throw e;
        }
        continue;
      }
      // On the connection that it came from: another one knows nothing of it.
      const { transport } = this;
      if (this.repeats(m)) {
        transport?.send({ type: "ack", view_seq: m.number("view_seq") });
        continue;
      }
      const asked = this.#resyncing;
      const seen = this.apply(m);
      if (seen !== undefined) {
        transport?.send({ type: "ack", view_seq: seen.view_seq });
        return seen;
      }
      if (this.#resyncing && !asked) transport?.send({ type: "resync" });
    }
  }

  /** Iterates over observations until the connection ends, and throws its error unless close was called. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Observation, void> {
    for (;;) {
      let seen: Observation | undefined;
      try {
        seen = await this.observe();
      } catch (e) {
        if (e instanceof ConnectionEnded && e.code === 1000) return;
        throw e;
      }
      if (seen !== undefined) yield seen;
    }
  }

  /** Submits an intent, and waits for its outcome; a rejection is an outcome too. */
  async submit(kind: string, payload: Fields = {}, options: IntentOptions = {}): Promise<Outcome> {
    const context = options.context_seq ?? this.#viewSeq;
    if (context === undefined) throw new RangeError("an intent is based on an observation: call observe first, or give context_seq");
    const message = { type: "intent", req_id: options.req_id ?? newId(), kind, payload, context_seq: context, priority: options.priority, schema_version: options.schema_version };
    const { promise } = this.request(this.#intents, message, true);
    return within(promise as Promise<Outcome>, this.timeout, `the intent ${kind}`);
  }

  /** Cancels a generation, or an intent that waits for its tick. Returns whether there was one. */
  async cancel(reqId: string): Promise<boolean> {
    const { promise } = this.request(this.#cancels, { type: "cancel", req_id: reqId }, true);
    return within(promise as Promise<boolean>, this.timeout, `the cancel of "${reqId}"`).finally(() => this.#cancels.delete(reqId));
  }

  /** Begins a generation. Throws Refused if it may not begin. */
  async begin(options: GenerationOptions = {}): Promise<Generation> {
    const message = { type: "begin", ...options, req_id: options.req_id ?? newId() };
    const { promise } = this.request(this.#begins, message, false);
    return within(promise as Promise<Generation>, this.timeout, "the begin of a generation").finally(() => this.#begins.delete(message.req_id));
  }

  private request(waiting: Map<string, Request>, message: Outgoing & { req_id: string }, again: boolean): Pending<unknown> {
    this.check();
    if (waiting.has(message.req_id)) throw new RangeError(`request "${message.req_id}" waits for its answer already`);
    const answer = new Pending<unknown>();
    waiting.set(message.req_id, { message, answer });
    if (!this.send(message) && !again) answer.reject(new RequestFailed(message.req_id, "lost", "there is no connection at this moment; begin again"));
    return answer;
  }

  /** Whether a full view is the one that the program has: the first comes again after view_seq 0. */
  private repeats(m: Message): boolean {
    return m.members.get("full") === true && !this.#resyncing && m.number("view_seq") === this.#viewSeq && m.text("context_digest") === this.#digest;
  }

  /** Applies an observation. Returns undefined if it does not fit: a full view is then needed. */
  private apply(m: Message): Observation | undefined {
    const seq = m.number("view_seq");
    const full = m.members.get("full") === true;
    if (!full && (this.#resyncing || (this.#viewSeq !== undefined && seq <= this.#viewSeq))) return undefined;
    this.#resyncing = !full && this.#viewSeq !== undefined && seq !== this.#viewSeq + 1;
    if (this.#resyncing) return undefined;
    let view: Exact;
    try {
      view = apply(this.#view, m.members.get("patches") ?? null);
      if (this.#verify && digest(this.agent, view) !== m.text("context_digest")) throw new PatchError("the digest of the view is another");
    } catch (e) {
      if (!(e instanceof PatchError)) throw e;
      if (full) throw new ProtocolError(`full view ${seq} cannot be used: ${e.message}`);
      this.#resyncing = true;
      return undefined;
    }
    this.#view = view;
    this.#viewSeq = seq;
    this.#digest = m.text("context_digest");
    return { view_seq: seq, view: this.view, full, missed: m.has("missed") ? m.number("missed") : 0, at_ms: m.number("at_ms") };
  }

  protected override hello(): Outgoing {
    this.#waiting = []; // what was not applied comes again
    return { type: "hello", view_seq: this.#resyncing ? undefined : this.#viewSeq };
  }

  protected override welcomed(): void {
    for (const { message } of [...this.#intents.values(), ...this.#cancels.values()]) this.send(message);
  }

  protected override lost(why: Error, last: boolean): void {
    const generations = [...this.#generations.values()];
    this.#generations.clear();
    for (const g of generations) g.stop(new Stopped(g.reqId, "LOST", "the connection ended"));
    for (const waiting of last ? [this.#begins, this.#intents, this.#cancels] : [this.#begins]) {
      for (const [reqId, { answer }] of waiting) answer.reject(new RequestFailed(reqId, "lost", `${why.message}; send it again with the same req_id`));
      waiting.clear();
    }
  }

  protected override received(m: Message): void {
    switch (m.type) {
      case "observation":
        if (this.#waiting.length >= maxWaiting) throw new ProtocolError("the server sent more observations than its window");
        m.number("view_seq");
        this.#waiting.push(m);
        this.changed();
        break;
      case "outcome": {
        const reqId = m.text("req_id");
        const outcome = m.plain<{ outcome: Outcome }>().outcome;
        m.object("outcome");
        const begin = take(this.#begins, reqId);
        if (begin !== undefined) begin.answer.reject(new Refused(reqId, outcome));
        else take(this.#intents, reqId)?.answer.resolve(outcome);
        break;
      }
      case "begun": {
        const reqId = m.text("req_id");
        m.number("context_seq");
        const begin = take(this.#begins, reqId);
        if (begin === undefined) {
          this.send({ type: "end", req_id: reqId, failed: "the program has stopped waiting" });
          break;
        }
        const owner = {
          tell: (message: Outgoing) => this.send(message),
          submit: this.submit.bind(this),
          forget: (g: Generation) => {
            if (this.#generations.get(g.reqId) === g) this.#generations.delete(g.reqId);
          },
          timeout: this.timeout,
        };
        const generation = new Generation(owner, m.plain<Begun>());
        this.#generations.set(reqId, generation);
        begin.answer.resolve(generation);
        break;
      }
      case "stop": {
        const { req_id, code, reason } = m.plain<Stop>();
        take(this.#generations, m.text("req_id"))?.stop(new Stopped(req_id, code, reason));
        break;
      }
      case "ended":
        m.number("tokens");
        take(this.#generations, m.text("req_id"))?.close(m.plain<Ended>());
        break;
      case "cancelled":
        take(this.#cancels, m.text("req_id"))?.answer.resolve(m.boolean("found"));
        break;
      case "error":
        this.refused(m.text("code"), m.text("detail"), m.has("req_id") ? m.text("req_id") : "");
        break;
    }
  }

  /** Takes an error: it answers the oldest request of its req_id. */
  private refused(code: string, detail: string, reqId: string): void {
    if (code === "no_generation") {
      take(this.#generations, reqId)?.stop(new Stopped(reqId, "LOST", detail));
      return;
    }
    const request = take(this.#begins, reqId) ?? take(this.#intents, reqId) ?? take(this.#cancels, reqId);
    request?.answer.reject(new RequestFailed(reqId, code, detail));
  }
}

function take<T>(from: Map<string, T>, reqId: string): T | undefined {
  const found = from.get(reqId);
  from.delete(reqId);
  return found;
}
