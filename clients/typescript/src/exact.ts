/**
 * JSON with exact numbers: 2 and 2.0 differ, and integers have 64 bits. Views are kept so, since
 * their digests depend on it; the program gets plain values by {@link plain}.
 */

import { ProtocolError } from "./errors.js";
import type { Json } from "./forms.js";
import { sha256 } from "./sha256.js";

/** A number as its canonical text: an integer, or a float with a point or an exponent. */
export class ExactNumber {
  private constructor(readonly text: string) {}

  /** Reads a number of JSON. */
  static parse(text: string): ExactNumber {
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw new ProtocolError(`${text.slice(0, 40)} is not a number of JSON`);
    if (/[.eE]/.test(text)) return ExactNumber.float(Number(text));
    if (text.length > 20) throw new ProtocolError("an integer has 64 bits at most");
    return new ExactNumber(BigInt(text).toString());
  }

  /** Returns a float, so that 2 is sent as 2.0. */
  static float(value: number): ExactNumber {
    if (!Number.isFinite(value)) throw new ProtocolError(`${value} is not a number of JSON`);
    return new ExactNumber(floatText(value));
  }

  /** The nearest JavaScript number. Integers beyond 2^53 lose digits; text has them. */
  get value(): number {
    return Number(this.text);
  }
}

/** An exact value. */
export type Exact = null | boolean | string | ExactNumber | Exact[] | Map<string, Exact>;

/** What can be sent: plain values, and exact numbers among them. */
export type Sendable = null | boolean | string | number | ExactNumber | readonly Sendable[] | Fields;

/** An object that can be sent. Members that are undefined are left out. */
export interface Fields {
  readonly [name: string]: Sendable | undefined;
}

/** Values are nested at most so deep: 512 levels of a view, and those of the message around it. */
export const maxDepth = 516;

/** The shortest digits: plain from 1e-5 up to 1e16, else with an exponent. */
function floatText(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa = "", exponent = ""] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const point = Number(exponent) + 1; // the value is 0.DIGITS times ten to the power of point
  const sign = value < 0 ? "-" : "";
  if (point <= -5 || point > 16) return `${sign}${digits[0]}${digits.length > 1 ? "." : ""}${digits.slice(1)}e${point - 1}`;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return `${sign}${digits}${"0".repeat(point - digits.length)}.0`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** Returns the value of a JSON text. */
export function parse(text: string): Exact {
  const reader = new Reader(text);
  const value = reader.value(maxDepth);
  reader.end();
  return value;
}

const escapes: Record<string, string> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

class Reader {
  private at = 0;
  constructor(private readonly text: string) {}

  private fail(what: string): never {
    throw new ProtocolError(`character ${this.at} of the JSON text: ${what}`);
  }

  private token(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.at += found.length;
    return found;
  }

  private next(): string {
    this.token(/[ \t\n\r]*/y);
    return this.text.charAt(this.at);
  }

  end(): void {
    if (this.next() !== "") this.fail("something follows the value");
  }

  value(depth: number): Exact {
    const c = this.next();
    switch (c) {
      case "{":
      case "[":
        if (depth === 0) this.fail(`nested deeper than ${maxDepth} levels`);
        this.at++;
        return c === "{" ? this.object(depth - 1) : this.array(depth - 1);
      case '"':
        return this.string();
    }
    const word = this.token(/true|false|null/y);
    if (word !== undefined) return word === "null" ? null : word === "true";
    const number = this.token(/-?\d[\d.eE+-]*/y);
    return number === undefined ? this.fail("no value") : ExactNumber.parse(number);
  }

  private array(depth: number): Exact[] {
    const list: Exact[] = [];
    if (this.next() === "]") {
      this.at++;
      return list;
    }
    for (;;) {
      list.push(this.value(depth));
      const c = this.next();
      this.at++;
      if (c === "]") return list;
      if (c !== ",") this.fail("no , or ]");
    }
  }

  private object(depth: number): Map<string, Exact> {
    const members = new Map<string, Exact>();
    if (this.next() === "}") {
      this.at++;
      return members;
    }
    for (;;) {
      if (this.next() !== '"') this.fail("no name");
      const name = this.string();
      if (members.has(name)) this.fail("a name stands twice in an object");
      if (this.next() !== ":") this.fail("no :");
      this.at++;
      members.set(name, this.value(depth));
      const c = this.next();
      this.at++;
      if (c === "}") return members;
      if (c !== ",") this.fail("no , or }");
    }
  }

  private string(): string {
    this.at++;
    let s = "";
    for (;;) {
      s += this.token(/[^"\\\u0000-\u001f]*/y) ?? "";
      const c = this.text.charAt(this.at++);
      if (c === '"') return s;
      if (c !== "\\") this.fail("an open text, or a control character in it");
      const e = this.text.charAt(this.at++);
      const plain = escapes[e];
      if (plain !== undefined) {
        s += plain;
      } else {
        const hex = e === "u" ? this.token(/[0-9a-fA-F]{4}/y) : undefined;
        s += hex === undefined ? this.fail("an unknown escape") : String.fromCharCode(parseInt(hex, 16));
      }
    }
  }
}

/** Compares texts by code points; JavaScript's own order is that of UTF-16. */
function byCodePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

const text = (s: string): string => JSON.stringify(s);

/** Returns the canonical form of a value: sorted members, no blanks, floats with a point or an exponent. */
export function canonical(value: Exact): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return text(value);
  if (value instanceof ExactNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const names = [...value.keys()].sort(byCodePoints);
  return `{${names.map((name) => `${text(name)}:${canonical(value.get(name) ?? null)}`).join(",")}}`;
}

/** Returns the context_digest of a view. */
export function digest(agent: string, view: Exact): string {
  const whole = new Map<string, Exact>([["agent_id", agent]]);
  for (const name of ["visible_entities", "visible_relationships"]) whole.set(name, view instanceof Map ? (view.get(name) ?? null) : null);
  return sha256(new TextEncoder().encode(canonical(whole)));
}

/** The plain values of exact containers. Both are never changed, so parts of views are converted once. */
const converted = new WeakMap<object, Json>();

/** Returns a value as programs use it. Do not change it: later views share its parts. */
export function plain(value: Exact): Json {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof ExactNumber) return value.value;
  const known = converted.get(value);
  if (known !== undefined) return known;
  let result: Json;
  if (Array.isArray(value)) {
    result = value.map(plain);
  } else {
    result = {};
    for (const [name, member] of value) {
      // Not by assignment: a member __proto__ is a member.
      Object.defineProperty(result, name, { value: plain(member), enumerable: true, configurable: true, writable: true });
    }
  }
  converted.set(value, result);
  return result;
}

/** Returns the JSON text of what is sent. */
export function stringify(value: Sendable | undefined): string {
  if (value instanceof ExactNumber) return value.text;
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${value} is not a number of JSON`);
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([name, member]) => `${text(name)}:${stringify(member as Sendable)}`).join(",")}}`;
  }
  const result: string | undefined = JSON.stringify(value);
  if (result === undefined) throw new TypeError(`a ${typeof value} is not JSON`);
  return result;
}
