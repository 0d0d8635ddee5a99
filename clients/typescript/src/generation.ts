/** A generation: the program drives its model, and the world can stop it. */

import { Stopped } from "./errors.js";
import type { Fields } from "./exact.js";
import type { Ended, Outcome } from "./forms.js";
import { Pending, within } from "./link.js";
import type { Outgoing } from "./transport.js";

/** What a generation needs of its agent. */
export interface GenerationOwner {
  /** Sends a message, and returns false if there is no connection. */
  tell(m: Outgoing): boolean;
  submit(kind: string, payload: Fields, more: { req_id: string; context_seq: number }): Promise<Outcome>;
  forget(generation: Generation): void;
  readonly timeout: number;
}

/** The begun message. */
export interface Begun {
  readonly req_id: string;
  readonly context_seq: number;
  readonly context_digest: string;
  readonly deadline_ms?: number;
  readonly token_budget?: number;
}

/**
 * A generation that runs; Agent.begin makes it. Give {@link signal} to the call of the model: it
 * aborts as soon as the world stops the generation.
 */
export class Generation {
  readonly #over = new Pending<Ended>();
  readonly #abort = new AbortController();
  readonly #text: string[] = [];
  #tokens = 0;
  #stopped: Stopped | undefined;
  #ended: Ended | undefined;

  constructor(private readonly owner: GenerationOwner, readonly begun: Begun) {}

  get reqId(): string {
    return this.begun.req_id;
  }

  /** Aborts when the world stops it; its reason is a {@link Stopped}. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The text that was written. */
  get text(): string {
    return this.#text.join("");
  }

  get stopped(): Stopped | undefined {
    return this.#stopped;
  }

  /** Resolves at its end, and rejects with Stopped if the world stops it. */
  get over(): Promise<Ended> {
    return this.#over.promise;
  }

  /**
   * Sends text of the model, of count tokens. Returns whether the generation goes on: at its budget
   * it ends, and the text so far is the answer. Throws Stopped if the world stopped it.
   */
  write(text: string, count = 1): boolean {
    if (this.#stopped !== undefined) throw this.#stopped;
    if (this.#ended !== undefined) return false;
    this.#text.push(text);
    this.#tokens += count;
    this.tell({ type: "tokens", req_id: this.reqId, text, count });
    return true;
  }

  /** Says that the model is done, and waits until its answer is recorded. */
  async end(): Promise<Ended> {
    return this.finish({ type: "end", req_id: this.reqId });
  }

  /** Says that the model gave no answer, and why. */
  async fail(reason: string): Promise<Ended> {
    return this.finish({ type: "end", req_id: this.reqId, failed: reason || "no reason" });
  }

  /** Ends it with an intent that is made of its text. */
  async submit(kind: string, payload: Fields = {}): Promise<Outcome> {
    if (this.#stopped !== undefined) throw this.#stopped;
    const outcome = await this.owner.submit(kind, payload, { req_id: this.reqId, context_seq: this.begun.context_seq });
    this.owner.forget(this);
    this.close({ finish: "stop", tokens: this.#tokens });
    return outcome;
  }

  private async finish(m: Outgoing): Promise<Ended> {
    if (this.#stopped === undefined && this.#ended === undefined) this.tell(m);
    return within(this.over, this.owner.timeout, `the end of generation "${this.reqId}"`);
  }

  private tell(m: Outgoing): void {
    if (!this.owner.tell(m)) this.stop(new Stopped(this.reqId, "LOST", "the connection ended"));
  }

  /** Called by the agent: the world stops it. */
  stop(why: Stopped): void {
    if (this.#stopped !== undefined || this.#ended !== undefined) return;
    this.#stopped = why;
    this.#over.reject(why);
    this.#abort.abort(why);
  }

  /** Called by the agent: it has ended. */
  close(how: Ended): void {
    if (this.#stopped !== undefined || this.#ended !== undefined) return;
    this.#ended = how;
    this.#over.resolve(how);
  }
}
