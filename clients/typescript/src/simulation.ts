/** A simulation: a game engine that holds the time of a session. */

import { ConnectionEnded, ProtocolError, RequestFailed } from "./errors.js";
import type { Fields } from "./exact.js";
import type { LoggedEffect, Outcome, Ticked } from "./forms.js";
import { Link, type LinkOptions, Pending, newId, within } from "./link.js";
import type { Message } from "./messages.js";
import type { Server } from "./server.js";
import { type Outgoing, bySocket } from "./transport.js";

export interface SimulationOptions extends LinkOptions {
  /** Continues after the effects of this entry; absent: the effects of the future come. */
  readonly seq?: number;
  /** Bounds the effects that wait to be read; 65,536 if absent. */
  readonly maxEffects?: number;
}

export interface TickOptions {
  readonly delta_time?: number;
  readonly frame_number?: number;
  readonly source_id?: string;
}

export interface DraftOptions {
  readonly source_id: string;
  readonly sim_time?: number;
  readonly priority?: number;
  readonly schema_version?: string;
  /** Of the effect. A draft that is sent twice happens twice: look for it among the effects after a fault. */
  readonly uuid?: string;
}

export interface SimulationIntentOptions {
  readonly context_seq: number;
  readonly req_id?: string;
  readonly sim_time?: number;
  readonly priority?: number;
  readonly schema_version?: string;
}

/**
 * The holder of a session's time; there is one. It needs a WebSocket. After a loss it connects
 * again and continues without a gap of effects; drafts and ticks without an answer fail.
 */
export class Simulation extends Link {
  readonly #maxEffects: number;
  #seq: number | undefined;
  #simTime = 0;
  #authority = "";
  #effects: LoggedEffect[] = [];
  readonly #requests = new Map<string, Pending<Outcome>>();
  #tick: Pending<Omit<Ticked, "effects">> | undefined;

  private constructor(server: Server, readonly session: string, options: SimulationOptions) {
    super(bySocket(server, server.path(session, "sim", "ws"), "sajou.sim.v1"), options.backoff, options.timeout ?? server.timeout);
    this.#seq = options.seq;
    this.#maxEffects = options.maxEffects ?? 65_536;
  }

  /** Connects. A second holder is refused with ConnectionEnded 4007. */
  static async connect(server: Server, session: string, options: SimulationOptions = {}): Promise<Simulation> {
    const link = new Simulation(server, session, options);
    await link.start();
    return link;
  }

  /** Session time in seconds, as of the welcome or the last tick. */
  get simTime(): number {
    return this.#simTime;
  }

  /** The time authority of the session: sim, manual or wall. */
  get authority(): string {
    return this.#authority;
  }

  /** The newest entry whose effects were received. */
  get seq(): number | undefined {
    return this.#seq;
  }

  /** Moves session time, and decides what waits. Resolves when the tick is durable. */
  async tick(simTime: number, options: TickOptions = {}): Promise<Ticked> {
    this.check();
    if (this.#tick !== undefined) throw new RangeError("an earlier tick has no answer yet; wait for it");
    const answer = (this.#tick = new Pending<Omit<Ticked, "effects">>());
    if (!this.send({ type: "tick", sim_time: simTime, ...options })) this.failTick("lost", "there is no connection at this moment; tick again");
    const ticked = await within(answer.promise, this.timeout, "the tick");
    return { ...ticked, effects: this.takeEffects() };
  }

  /** Returns the effects that came since they were last taken, also by a tick. */
  takeEffects(): LoggedEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** Makes an effect from outside of the world. Where ticks decide, its outcome comes with the next one. */
  async draft(kind: string, payload: Fields, options: DraftOptions): Promise<Outcome> {
    return this.submit({ type: "draft", req_id: newId(), kind, payload, ...options });
  }

  /** Submits an intent of an agent that the simulation plays. Outcomes have no agent: each req_id names one request. */
  async intent(agentId: string, kind: string, payload: Fields, options: SimulationIntentOptions): Promise<Outcome> {
    return this.submit({ type: "intent", agent_id: agentId, kind, payload, ...options, req_id: options.req_id ?? newId() });
  }

  /** The wait has no end of its own: the outcome comes with a tick, or fails with the connection. */
  private async submit(message: Outgoing & { req_id: string }): Promise<Outcome> {
    this.check();
    if (this.#requests.has(message.req_id)) throw new RangeError(`request "${message.req_id}" waits for its outcome already`);
    const answer = new Pending<Outcome>();
    this.#requests.set(message.req_id, answer);
    if (!this.send(message)) this.failRequest(message.req_id, "lost", "there is no connection at this moment; send it again");
    return answer.promise;
  }

  private failTick(code: string, detail: string): void {
    this.#tick?.reject(new RequestFailed("tick", code, detail));
    this.#tick = undefined;
  }

  private failRequest(reqId: string, code: string, detail: string): void {
    this.#requests.get(reqId)?.reject(new RequestFailed(reqId, code, detail));
    this.#requests.delete(reqId);
  }

  protected override temporary(why: Error): boolean {
    // The server may not have seen the end of this program's earlier connection.
    return super.temporary(why) || (why instanceof ConnectionEnded && why.code === 4007);
  }

  protected override hello(): Outgoing {
    return { type: "hello", seq: this.#seq };
  }

  protected override welcomed(m: Message): void {
    this.#simTime = m.number("sim_time");
    this.#authority = m.text("time");
    this.#seq ??= m.number("seq");
  }

  protected override lost(why: Error): void {
    for (const reqId of [...this.#requests.keys()]) this.failRequest(reqId, "lost", `${why.message}; what was not decided was withdrawn`);
    this.failTick("lost", `${why.message}; read simTime, and tick again`);
  }

  protected override received(m: Message): void {
    switch (m.type) {
      case "effect": {
        const seq = m.number("seq");
        m.object("effect");
        if (this.#seq !== undefined && seq <= this.#seq) break;
        if (this.#effects.length >= this.#maxEffects) throw new ProtocolError(`${this.#maxEffects} effects wait to be read; call takeEffects or tick more often`);
        this.#seq = seq;
        this.#effects.push(m.plain<LoggedEffect>());
        break;
      }
      case "ticked": {
        const result = { sim_time: m.number("sim_time"), decided: m.number("decided"), waiting: m.number("waiting"), seq: m.number("seq") };
        this.#simTime = Math.max(this.#simTime, result.sim_time);
        this.#seq = Math.max(this.#seq ?? 0, result.seq);
        this.#tick?.resolve(result);
        this.#tick = undefined;
        break;
      }
      case "outcome":
        m.object("outcome");
        this.#requests.get(m.text("req_id"))?.resolve(m.plain<{ outcome: Outcome }>().outcome);
        this.#requests.delete(m.text("req_id"));
        break;
      case "error":
        if (m.has("req_id")) this.failRequest(m.text("req_id"), m.text("code"), m.text("detail"));
        else if (["bad_tick", "unavailable"].includes(m.text("code"))) this.failTick(m.text("code"), m.text("detail"));
        break;
    }
  }
}
