/** Messages of the server, as they are read. */

import { ProtocolError } from "./errors.js";
import { type Exact, plain } from "./exact.js";

/** A message that was read: typed access to its members, which fails with their place. */
export class Message {
  readonly type: string;

  constructor(readonly members: Map<string, Exact>) {
    this.type = this.text("type");
  }

  static of(value: Exact): Message {
    if (!(value instanceof Map)) throw new ProtocolError("a message is an object");
    return new Message(value);
  }

  text(name: string): string {
    return this.as(name, "string", "a text");
  }

  number(name: string): number {
    return this.as(name, "number", "a number");
  }

  boolean(name: string): boolean {
    return this.as(name, "boolean", "true or false");
  }

  /** Returns an object member in the form of the protocol. The schema of the server is trusted for what is inside. */
  object<T extends object>(name: string): T {
    const value = this.as(name, "object", "an object") as object | null;
    if (value === null || Array.isArray(value)) throw this.wrong(name, "an object");
    return value as T;
  }

  has(name: string): boolean {
    return this.members.has(name);
  }

  /** Returns the whole message as plain values. */
  plain<T extends object>(): T {
    return plain(this.members) as T;
  }

  private as<T>(name: string, type: string, want: string): T {
    const value = plain(this.members.get(name) ?? null);
    if (typeof value !== type) throw this.wrong(name, want);
    return value as T;
  }

  private wrong(name: string, want: string): ProtocolError {
    return new ProtocolError(`message ${this.type ?? ""}: /${name}: want ${want}`);
  }
}
