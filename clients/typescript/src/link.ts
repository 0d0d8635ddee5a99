/** A connection that is kept: it says hello, notices silence, and connects again. */

import { ConnectionEnded, Problem, ProtocolError, SajouError, TimeoutError } from "./errors.js";
import type { Message } from "./messages.js";
import { type Backoff, defaultBackoff, delays } from "./server.js";
import type { Dial, Outgoing, Transport } from "./transport.js";

export interface LinkOptions {
  /** The waits before it connects again. */
  readonly backoff?: Backoff;
  /** Bounds each wait for an answer, in milliseconds; that of the server if absent. */
  readonly timeout?: number;
}

/** The close codes after which a client connects again by itself. */
const temporary = new Set([1001, 1005, 1006, 1011, 4008]);

/** What agents and simulations have in common. */
export abstract class Link {
  #transport: Transport | undefined; // of the present connection
  #connected = false; // it has its welcome
  #failure: Error | undefined;
  #closing = false;
  #waits: Generator<number, undefined> | undefined; // since the last welcome; undefined before the first
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watchers = new Set<() => void>(); // of the state

  protected constructor(private readonly dial: Dial, private readonly backoff: Backoff = defaultBackoff, protected readonly timeout: number) {}

  protected abstract hello(): Outgoing;
  /** Called with the first message of a connection. */
  protected abstract welcomed(m: Message): void;
  protected abstract received(m: Message): void;
  /** Called at the end of each connection. last says that there will be no other. */
  protected abstract lost(why: Error, last: boolean): void;

  /** Why the connection has ended for good; undefined while it lives or is made again. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** Waits until there is a connection. */
  async whenConnected(timeout = this.timeout): Promise<void> {
    await this.until(() => this.#connected, timeout, "the connection");
  }

  /** Drops the connection and makes a new one, as after a failed network. */
  reconnect(): void {
    this.#transport?.cut();
  }

  /** Ends the connection. What waits for an answer fails. */
  close(): void {
    this.#closing = true;
    const transport = this.#transport;
    this.end(new ConnectionEnded(1000, "this side closed it"));
    transport?.close();
  }

  /** Connects. The first connection is tried once. */
  protected async start(): Promise<void> {
    this.open();
    // The timers of the link bound this wait.
    await this.until(() => this.#waits !== undefined, Infinity, "the welcome");
  }

  /** Sends a message, unless there is no connection. Returns whether it was sent. */
  protected send(m: Outgoing): boolean {
    if (!this.#connected || this.#transport === undefined) return false;
    this.#transport.send(m);
    return true;
  }

  /** The connection of now, for what makes sense on no other. */
  protected get transport(): Transport | undefined {
    return this.#connected ? this.#transport : undefined;
  }

  /** Throws the error of a link that has ended. */
  protected check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Tells those who wait that the state has changed. */
  protected changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** Waits until a condition holds. Throws the error of a link that ends before. */
  protected async until(holds: () => boolean, timeout: number, what: string): Promise<void> {
    if (holds()) return;
    this.check();
    await new Promise<void>((resolve, reject) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const done = (settle: () => void): void => {
        clearTimeout(timer);
        this.#watchers.delete(look);
        settle();
      };
      const look = (): void => {
        if (holds()) done(resolve);
        else if (this.#failure !== undefined) done(() => reject(this.#failure));
      };
      this.#watchers.add(look);
      if (timeout !== Infinity) timer = setTimeout(() => done(() => reject(new TimeoutError(`${what} did not come in ${timeout} ms; it may still come`))), timeout);
    });
  }

  private open(): void {
    let idle = this.timeout; // until the welcome
    const transport: Transport = this.dial(this.hello(), {
      message: (m) => {
        if (this.#transport !== transport) return;
        if (!this.#connected) {
          if (m.type !== "welcome" || m.number("protocol") !== 1) throw new ProtocolError(`the server sent ${m.type} in place of a welcome of protocol 1`);
          idle = 2 * m.number("heartbeat_ms");
          this.#waits = delays(this.backoff);
          this.#connected = true;
          this.arm(idle, transport);
          this.welcomed(m);
          this.changed();
          return;
        }
        this.arm(idle, transport);
        if (m.type !== "heartbeat") this.received(m);
      },
      ended: (why) => {
        if (this.#transport === transport) this.end(why);
      },
    });
    this.#transport = transport;
    this.arm(idle, transport);
  }

  /** Takes the connection for lost if nothing comes in time. */
  private arm(idle: number, transport: Transport): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => transport.cut(), idle);
  }

  private end(why: Error): void {
    if (this.#failure !== undefined) return;
    clearTimeout(this.#timer);
    this.#transport = undefined;
    this.#connected = false;
    const delay = !this.#closing && this.temporary(why) ? this.#waits?.next().value : undefined;
    if (delay === undefined) this.#failure = why;
    else this.#timer = setTimeout(() => this.open(), delay);
    this.lost(why, delay === undefined);
    this.changed();
  }

  /** Whether another connection may help. */
  protected temporary(why: Error): boolean {
    if (why instanceof ConnectionEnded) return temporary.has(why.code);
    if (why instanceof Problem) return [429, 502, 503, 504].includes(why.status);
    return !(why instanceof SajouError);
  }
}

/** An answer that is to come. */
export class Pending<T> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  reject!: (why: Error) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => undefined); // the caller may have stopped waiting
  }
}

/** Bounds a wait, in milliseconds. */
export async function within<T>(answer: Promise<T>, timeout: number, what: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(`no answer to ${what} in ${timeout} ms; it may still come`)), timeout);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns a new req_id. crypto.randomUUID is absent from pages without TLS. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
