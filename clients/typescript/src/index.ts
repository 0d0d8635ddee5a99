/** A client of Sajou's server. It has no dependencies, and works in browsers and in Node 20. */

export { Agent, type AgentOptions, type GenerationOptions, type IntentOptions } from "./agent.js";
export { type Choice, type ChoicePoint, type Directive, Director, type DirectorResponse, type Guidance, type Opening } from "./director.js";
export { ConnectionEnded, Problem, ProtocolError, Refused, RequestFailed, SajouError, Stopped, TimeoutError } from "./errors.js";
export { type Exact, ExactNumber, type Fields, type Sendable, canonical, digest, parse, plain, stringify } from "./exact.js";
export type { Effect, Ended, Json, LoggedEffect, Observation, Outcome, Rejection, Ticked, View } from "./forms.js";
export { type Begun, Generation } from "./generation.js";
export type { LinkOptions } from "./link.js";
export { type Receipt, type RecordOptions, Recorder, type Signal } from "./recorder.js";
export { type Backoff, Server, type ServerOptions, type WebSocketConstructor, type WebSocketLike } from "./server.js";
export { type DraftOptions, Simulation, type SimulationIntentOptions, type SimulationOptions, type TickOptions } from "./simulation.js";
export { type Watched, type WatchOptions, watch } from "./watch.js";
export { World, type WorldOptions, type WorldState } from "./world.js";
