/** The errors of the library. Each states the fact, and where there is one, the remedy. */

import type { Outcome, ProblemDocument } from "./forms.js";

/** The class of all errors of this library, except for RangeError and TypeError of wrong arguments. */
export class SajouError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** The server sent something that the protocol does not allow. */
export class ProtocolError extends SajouError {}

/** No answer came in time. */
export class TimeoutError extends SajouError {}

const remedies: Record<number, string> = {
  1000: "the program closed the connection; connect again",
  1001: "the server stops; connect again later",
  1003: "a frame was not text; this is a fault of the client",
  1006: "the network failed, or the server did not answer; connect again",
  1009: "the message was too large; send a smaller one",
  1011: "the server failed; connect again later",
  4000: "the server could not read the messages; this is a fault of the client",
  4001: "give a valid token",
  4002: "say hello in time",
  4003: "give a token with the right scope: act for an agent, tick for a simulation",
  4004: "begin the world and register the agent first",
  4005: "another connection of this agent took over; run one program for each agent",
  4006: "the agent has left the world; register it again",
  4007: "end the other simulation of the session, or wait until the server notices its end",
  4008: "the store takes no entries; connect again later",
};

/** The connection is over. code is the close code, 1006 if the network failed. */
export class ConnectionEnded extends SajouError {
  constructor(readonly code: number, readonly reason = "") {
    const remedy = remedies[code];
    super(`the connection ended with ${code}${reason && ` (${reason})`}${remedy === undefined ? "" : `: ${remedy}`}`);
  }
}

/** The server refused a request with a problem document (RFC 9457). code is the kind of problem. */
export class Problem extends SajouError {
  readonly code: string;
  /** Where the faulty value is in the body. */
  readonly pointer: string | undefined;

  constructor(readonly status: number, readonly document: ProblemDocument, /** In milliseconds. */ readonly retryAfter?: number) {
    super(`the server answered ${status} ${document.code ?? ""}: ${document.detail ?? document.title ?? ""}`);
    this.code = document.code ?? "";
    this.pointer = document.pointer;
  }
}

/**
 * A request has no outcome. code is that of an error message, such as unavailable, or lost if the
 * connection ended before the answer. The same req_id may be sent again.
 */
export class RequestFailed extends SajouError {
  constructor(readonly reqId: string, readonly code: string, readonly detail: string) {
    super(`request "${reqId}": ${code}: ${detail}`);
  }
}

/** A generation may not begin; outcome has the reason. */
export class Refused extends SajouError {
  constructor(readonly reqId: string, readonly outcome: Outcome) {
    const r = outcome.rejection;
    super(`generation "${reqId}" may not begin: ${r ? `${r.code}: ${r.reason ?? ""}` : "the request has an outcome"}`);
  }
}

/** The world stopped a generation. code is GENERATION_CANCELLED, TIMEOUT, or LOST if the connection ended. */
export class Stopped extends SajouError {
  constructor(readonly reqId: string, readonly code: string, readonly reason: string) {
    super(`generation "${reqId}" was stopped: ${code}: ${reason}`);
  }

  /** Whether newer observations made it stale: begin again with the same req_id. */
  get stale(): boolean {
    return this.reason.startsWith("stale_due_to");
  }
}
