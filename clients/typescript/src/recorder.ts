/** Recording signals into a session. */

import { type Fields, type Sendable, plain } from "./exact.js";
import { newId } from "./link.js";
import type { Server } from "./server.js";

/** A signal. */
export interface Signal {
  readonly id?: string;
  readonly type: string;
  readonly timestamp?: number;
  readonly source?: string;
  readonly correlationId?: string;
  readonly payload: Fields;
  readonly metadata?: Fields;
}

/** The proof that signals are durable. repeat says that an earlier request with the same key recorded them. */
export interface Receipt {
  readonly session: string;
  readonly first: number;
  readonly head: { readonly seq: number; readonly hash: string };
  readonly signals: number;
  readonly flagged: number;
  readonly out_of_order: number;
  readonly repeat: boolean;
}

export interface RecordOptions {
  /** The idempotency key: a second call with it records nothing and returns the first receipt. A new one if absent. */
  readonly key?: string;
  /** The head that the session must have; otherwise the problem conflict. */
  readonly expect?: { readonly seq: number; readonly hash: string };
  /** Whether signals that the schema refuses are recorded with the reason. */
  readonly lenient?: boolean;
}

/** Records into one session; the token needs the scope record. */
export class Recorder {
  constructor(readonly server: Server, readonly session: string, readonly source = "sajou-typescript") {}

  /**
   * Records one signal, or many: all or none. They are durable when it resolves. A missing id,
   * timestamp or source is filled in once, so that a repeat after a fault records the same.
   */
  async record(signals: Signal | readonly Signal[], options: RecordOptions = {}): Promise<Receipt> {
    const filled = (s: Signal): Sendable => ({ id: newId(), timestamp: Date.now(), source: this.source, ...s }) as unknown as Sendable;
    const headers: Record<string, string> = { "Idempotency-Key": options.key ?? newId() };
    if (options.expect !== undefined) headers["If-Match"] = `"${options.expect.seq}:${options.expect.hash}"`;
    const path = this.server.path(this.session, "signals") + (options.lenient ? "?lenient=true" : "");
    const body = Array.isArray(signals) ? signals.map(filled) : filled(signals as Signal);
    return plain(await this.server.request("POST", path, body, { headers, repeat: true })) as unknown as Receipt;
  }
}
