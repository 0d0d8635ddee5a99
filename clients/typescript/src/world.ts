/** Setting up the world of a session. */

import { type Sendable, plain } from "./exact.js";
import type { View } from "./forms.js";
import type { Server } from "./server.js";

export interface WorldOptions {
  /** The time authority of a new session. */
  readonly time?: "wall" | "sim" | "manual";
  readonly config?: Sendable;
  /** The entities and relationships to begin with. */
  readonly world?: Sendable;
}

export interface WorldState {
  readonly time: "wall" | "sim" | "manual";
  readonly sim_time: number;
  readonly seq: number;
}

/** The world of one session; the token needs the scope define. */
export class World {
  constructor(readonly server: Server, readonly session: string) {}

  /** Begins the session if it is new, configures its world, and brings entities into it. */
  async begin(options: WorldOptions = {}): Promise<WorldState> {
    return plain(await this.server.request("PUT", this.server.path(this.session, "world"), { ...options })) as unknown as WorldState;
  }

  /** Registers an agent. One that is registered gets the new policy and a full view. */
  async register(agent: string, options: { policy?: Sendable; permissions?: readonly string[]; class?: string } = {}): Promise<void> {
    await this.server.request("PUT", this.server.path(this.session, "agents", agent), { ...options });
  }

  /** Lets an agent leave. */
  async remove(agent: string): Promise<void> {
    await this.server.request("DELETE", this.server.path(this.session, "agents", agent));
  }

  /** Returns the view that was delivered to an agent. The token needs the scope read, or act as the agent. */
  async view(agent: string): Promise<View & { readonly view_seq: number; readonly context_digest: string }> {
    return plain(await this.server.request("GET", this.server.path(this.session, "agents", agent, "view"), undefined, { repeat: true })) as never;
  }
}
