/** The address of a server, and requests to it. */

import { Problem, ProtocolError, SajouError, TimeoutError } from "./errors.js";
import { type Exact, type Sendable, parse, plain, stringify } from "./exact.js";
import type { Json, ProblemDocument } from "./forms.js";

/** The part of a WebSocket that the library uses: that of browsers, of Node 22, of the package ws. */
export interface WebSocketLike {
  send(data: string): void;
  close(code?: number, reason?: string): void;
  onopen: ((event: any) => unknown) | null;
  onmessage: ((event: any) => unknown) | null;
  onerror: ((event: any) => unknown) | null;
  onclose: ((event: any) => unknown) | null;
}

/** Makes a WebSocket. */
export type WebSocketConstructor = new (url: string, subprotocol: string) => WebSocketLike;

/** Waits before connecting again, in milliseconds: first, doubled after each failure up to most, as often as tries. */
export interface Backoff {
  readonly first: number;
  readonly most: number;
  readonly tries: number;
}

/** The waits that the protocol asks for. */
export const defaultBackoff: Backoff = { first: 500, most: 30_000, tries: Infinity };

export function* delays({ first, most, tries }: Backoff): Generator<number, undefined> {
  for (let delay = first; tries > 0; tries--, delay = Math.min(2 * delay, most)) yield delay;
  return undefined;
}

export interface ServerOptions {
  /** An access token. It is sent over https or to this machine, unless insecure is true. */
  readonly token?: string;
  readonly insecure?: boolean;
  /** Bounds each connection and each answer, in milliseconds; 30,000 if absent. */
  readonly timeout?: number;
  /** How requests that may be repeated are repeated after a fault. */
  readonly retry?: Backoff;
  /** What to use in place of the global functions of the platform. */
  readonly fetch?: typeof globalThis.fetch;
  readonly WebSocket?: WebSocketConstructor;
}

/** Bounds what is read of an answer and of a message, in characters. */
export const maxAnswer = 64 << 20;

/** A server: its address, such as http://127.0.0.1:5175, and the caller's token. */
export class Server {
  readonly url: URL;
  readonly timeout: number;
  readonly fetch: typeof globalThis.fetch;
  readonly WebSocket: WebSocketConstructor | undefined;
  readonly #token: string | undefined;
  readonly #retry: Backoff;

  constructor(url: string | URL = "http://127.0.0.1:5175", options: ServerOptions = {}) {
    this.url = new URL(url);
    const { protocol, hostname, username, search, hash } = this.url;
    if (protocol !== "http:" && protocol !== "https:") throw new RangeError(`"${url}" is not the address of a server; write http://HOST:PORT`);
    if (username !== "" || search !== "" || hash !== "") throw new RangeError("the address of a server has no user, query or fragment; give the token as an option");
    if (options.token && protocol === "http:" && !options.insecure && !["127.0.0.1", "[::1]", "localhost"].includes(hostname)) {
      throw new RangeError(`the token would travel to ${hostname} in plain text; use https, or insecure: true`);
    }
    this.#token = options.token;
    this.#retry = options.retry ?? { first: 200, most: 5000, tries: 4 };
    this.timeout = options.timeout ?? 30_000;
    this.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.WebSocket = options.WebSocket ?? (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
  }

  get token(): string | undefined {
    return this.#token;
  }

  /** Returns the path of something of a session. */
  path(session: string, ...parts: string[]): string {
    return ["/api/v1/sessions", session, ...parts].map((part, i) => (i === 0 ? part : encodeURIComponent(part))).join("/");
  }

  /** Returns the whole address of a path. */
  address(path: string): URL {
    return new URL(this.url.pathname.replace(/\/$/, "") + path, this.url);
  }

  /** Returns the headers of every request. */
  headers(more: Readonly<Record<string, string>> = {}): Record<string, string> {
    return this.#token === undefined ? { ...more } : { ...more, Authorization: `Bearer ${this.#token}` };
  }

  /**
   * Sends a request, and returns the JSON of its answer. A refusal is a {@link Problem}. With repeat,
   * the request is sent again after a fault and after answers that ask for it (429, 503).
   * Redirects are never followed.
   */
  async request(
    method: string, path: string, body?: Sendable | string, options: { headers?: Record<string, string>; repeat?: boolean; media?: string } = {},
  ): Promise<Exact> {
    const waits = options.repeat ? delays(this.#retry) : undefined;
    for (;;) {
      let error: unknown;
      let least = 0;
      try {
        const answer = await this.exchange(method, path, body, options.headers ?? {}, options.media);
        if (!(answer instanceof Problem)) return answer;
        if (answer.status !== 429 && answer.status !== 503) throw answer;
        least = Math.min(answer.retryAfter ?? 0, this.#retry.most);
        error = answer;
      } catch (e) {
        if (e instanceof SajouError && !(e instanceof TimeoutError)) throw e;
        error = e;
      }
      const delay = waits?.next().value;
      if (delay === undefined) throw error;
      await new Promise((resume) => setTimeout(resume, Math.max(delay, least)));
    }
  }

  private async exchange(
    method: string, path: string, body: Sendable | string | undefined, headers: Record<string, string>, media = "application/json",
  ): Promise<Exact | Problem> {
    const text = body === undefined ? null : media === "application/json" ? stringify(body) : String(body);
    const all = this.headers({ Accept: "application/json, application/x-ndjson", ...(text === null ? {} : { "Content-Type": media }), ...headers });
    const signal = AbortSignal.timeout(this.timeout);
    try {
      const answer = await this.fetch(this.address(path), { method, headers: all, body: text, redirect: "error", signal });
      const content = await bounded(answer);
      if (!answer.ok) return problemOf(answer, content);
      return media === "application/json" ? parse(content) : content;
    } catch (e) {
      if (signal.aborted) throw new TimeoutError(`no answer to ${method} ${path} in ${this.timeout} ms`);
      throw e;
    }
  }
}

/** Reads an answer of bounded size. */
export async function bounded(answer: Response): Promise<string> {
  if (answer.body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  const reader = answer.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > maxAnswer) {
      void reader.cancel();
      throw new ProtocolError(`the answer has more than ${maxAnswer} characters`);
    }
  }
}

/** Returns the problem of an answer. A proxy may refuse in other words than JSON. */
export function problemOf(answer: Response, content: string): Problem {
  const after = answer.headers.get("Retry-After") ?? "";
  let document: Json = null;
  try {
    document = plain(parse(content));
  } catch {
    // the status says enough
  }
  const known = typeof document === "object" && !Array.isArray(document) && document !== null ? (document as ProblemDocument) : { detail: answer.statusText };
  return new Problem(answer.status, known, /^\d{1,8}$/.test(after) ? Number(after) * 1000 : undefined);
}
