import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";

import { ExactNumber, ProtocolError, canonical, digest, parse, plain, stringify } from "../src/index.js";
import { maxDepth } from "../src/exact.js";
import { PatchError, apply } from "../src/patch.js";
import { sha256 } from "../src/sha256.js";
import { data } from "./real.js";

const vectors = plain(data("vectors.json")) as unknown as {
  canonical: { text: string; canonical: string }[];
  digests: { agent: string; view: string; digest: string }[];
  patches: { value: string; patch: string; result: string | null }[];
};

test("canonical JSON", () => {
  for (const v of vectors.canonical) {
    assert.equal(canonical(parse(v.text)), v.canonical, v.text);
    assert.equal(canonical(parse(v.canonical)), v.canonical);
  }
});

test("digests of views", () => {
  for (const v of vectors.digests) assert.equal(digest(v.agent, parse(v.view)), v.digest);
  for (let length = 0; length < 200; length++) {
    const bytes = randomBytes(length);
    assert.equal(sha256(bytes), createHash("sha256").update(bytes).digest("hex"));
  }
});

test("patches", () => {
  for (const v of vectors.patches) {
    const value = parse(v.value);
    const before = canonical(value);
    if (v.result === null) assert.throws(() => apply(value, parse(v.patch)), PatchError, v.patch);
    else assert.equal(canonical(apply(value, parse(v.patch))), v.result, v.patch);
    assert.equal(canonical(value), before, "the value itself does not change");
  }
});

test("what is not JSON", () => {
  const deep = "[".repeat(maxDepth + 1) + "]".repeat(maxDepth + 1);
  const nonsense = ["", "{", "NaN", "[1,]", "01", "1.", "-", "1e400", "1".repeat(40), '"\u0001"', '"\\x"', '"\\u12"', '{"a":1,"a":2}', "{} {}", "nul", deep, "[".repeat(1_000_000)];
  for (const text of nonsense) assert.throws(() => parse(text), ProtocolError, text.slice(0, 20));
  parse(deep.slice(1, -1));
});

test("plain values, and what is sent", () => {
  assert.deepEqual(plain(parse('{"a":[1,2.0,null,true,"x"],"b":{}}')), { a: [1, 2, null, true, "x"], b: {} });
  const hostile = plain(parse('{"__proto__":{"polluted":1}}')) as Record<string, unknown>;
  assert.deepEqual(Object.keys(hostile), ["__proto__"]);
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  assert.equal(stringify({ a: ExactNumber.float(2), b: 2, c: undefined, d: [ExactNumber.parse("9007199254740993")], é: '"' }), '{"a":2.0,"b":2,"d":[9007199254740993],"é":"\\""}');
  assert.throws(() => stringify(NaN), RangeError);
});
