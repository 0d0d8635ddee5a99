/** The director of a session: it guides the turns of a character through an episode. */

import { type Fields, type Sendable, plain } from "./exact.js";
import type { Json } from "./forms.js";
import type { Server } from "./server.js";

export interface Opening {
  readonly episode: string;
  readonly briefing: string;
  readonly opening_line: string;
}

/** What should happen now: a beat, and how urgent it is. */
export interface Directive {
  readonly beat_id: string;
  readonly instruction: string;
  readonly urgency: string;
  readonly context: string;
}

/** The guidance of a turn. section is the text for the character's prompt. */
export interface Guidance {
  readonly turn: number;
  readonly pacing: string;
  readonly physical_anchor: string;
  readonly genre: string;
  readonly energy_level: string;
  readonly context: readonly string[];
  readonly directive: Directive | null;
  readonly section: string;
}

export interface ChoicePoint {
  readonly id: string;
  readonly prompt: string;
  readonly choices: readonly { readonly id: string; readonly label: string }[];
  readonly mode: string;
  readonly context: { readonly character_said: string };
  readonly beat_id?: string;
}

/** What a response of the character changed: the beats by what became of them, and the choice that it leads to. */
export interface DirectorResponse {
  readonly turn: number;
  readonly attempt: number;
  readonly evaluated: boolean;
  readonly landed: readonly { readonly beat_id: string; readonly method: string; readonly assurance: string; readonly heard_at_turn: number }[];
  readonly missed: readonly string[];
  readonly completed: readonly string[];
  readonly failed: readonly string[];
  readonly revealed: readonly string[];
  readonly suggested: readonly string[];
  readonly visual: boolean;
  readonly choice: ChoicePoint | null;
}

/** A choice that was made. message is the user's next message: the next turn is then guided without a text. */
export interface Choice {
  readonly choice_point: string;
  readonly choice: string;
  readonly flag?: string;
  readonly message: { readonly role: "user"; readonly content: string; readonly metadata: { readonly [name: string]: Json } } | null;
  /** The same choice was made before. */
  readonly again: boolean;
}

/**
 * The director of one session; the token needs the scope define. Each call may be repeated: it then
 * has its first answer. So faults of the network are overcome by the option retry of the server.
 */
export class Director {
  constructor(readonly server: Server, readonly session: string) {}

  /** Begins an episode, in the form of docs/episodes.md. */
  async start(episode: Sendable, options: { flags?: readonly string[]; energy?: string } = {}): Promise<Opening> {
    return this.call("start", { episode, flags: options.flags, energy: options.energy });
  }

  /** Opens a turn with the user's text; without one after a choice that is a message. */
  async guide(turn: number, text?: string): Promise<Guidance> {
    return this.call("guide", { turn, text });
  }

  /** Records the character's response. attempt counts the responses to one turn, from 0; before are the lines before it. */
  async respond(
    turn: number, text: string, options: { attempt?: number; before?: readonly { readonly role: string; readonly text: string }[] } = {},
  ): Promise<DirectorResponse> {
    return this.call("respond", { turn, text, attempt: options.attempt, before: options.before });
  }

  /** Makes the user's choice. It is recorded as the user's message. */
  async choose(choicePoint: string, choice: string): Promise<Choice> {
    return this.call("choose", { choice_point: choicePoint, choice });
  }

  private async call<T>(what: string, body: Fields): Promise<T> {
    return plain(await this.server.request("POST", this.server.path(this.session, "director", what), body, { repeat: true })) as T;
  }
}
