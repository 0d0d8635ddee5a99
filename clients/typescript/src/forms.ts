/** The forms of what the server sends, with the names of the protocol. docs/protocol.md describes each message. */

/** A value as programs use it. */
export type Json = null | boolean | string | number | Json[] | { [name: string]: Json };

/** What an agent sees: entities by id, and relationships by the id from which they lead. */
export interface View {
  readonly visible_entities: { readonly [id: string]: { readonly [name: string]: Json } };
  readonly visible_relationships: { readonly [id: string]: Json };
}

/** A change of what the agent sees. view is the view after it; missed counts the observations that a full view stands for. */
export interface Observation {
  readonly view_seq: number;
  readonly view: View;
  readonly full: boolean;
  readonly missed: number;
  readonly at_ms: number;
}

export interface Effect {
  readonly uuid: string;
  readonly kind: string;
  readonly payload: { readonly [name: string]: Json };
  readonly global_seq: number;
  readonly sim_time: number;
  readonly source_id: string;
  readonly schema_version: string;
  readonly req_id?: string;
}

/** Why a request was refused. code is for programs, reason for people, recovery says what may be done. */
export interface Rejection {
  readonly code: string;
  readonly recovery: string;
  readonly agent_id?: string;
  readonly req_id?: string;
  readonly reason?: string;
  readonly expected_seq?: number;
  readonly actual_seq?: number;
  readonly quota?: string;
  readonly limit?: number;
  readonly retry_after_ms?: number;
  readonly problems?: readonly { readonly path: string; readonly reason: string }[];
}

/** What became of a request: an effect, or a rejection. A duplicate had its final outcome before. */
export interface Outcome {
  readonly status: "accepted" | "duplicate" | "rejected";
  readonly global_seq?: number;
  readonly uuid?: string;
  readonly number?: number;
  readonly effect?: Effect;
  readonly rejection?: Rejection;
}

export interface Stop {
  readonly req_id: string;
  readonly code: string;
  readonly reason: string;
}

/** The end of a generation. token_budget: the text so far is the answer. */
export interface Ended {
  readonly finish: "stop" | "token_budget" | "error";
  readonly tokens: number;
}

/** An effect with the number and the time of its entry in the log. */
export interface LoggedEffect {
  readonly seq: number;
  readonly at_ms: number;
  readonly effect: Effect;
}

/** The answer to a tick, with all effects since the tick before. */
export interface Ticked {
  readonly sim_time: number;
  readonly decided: number;
  readonly waiting: number;
  readonly seq: number;
  readonly effects: readonly LoggedEffect[];
}

/** The members of a problem document that every one has, and the pointer that some have. */
export interface ProblemDocument {
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly pointer?: string;
  readonly [name: string]: Json | undefined;
}
