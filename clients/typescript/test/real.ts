/** The real server of the tests, and their data. */

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { type Exact, Server, type ServerOptions, parse } from "../src/index.js";

const testdata = new URL("../../../testdata/", import.meta.url);

/** Returns the server of the environment. Its absence is an error, not a skipped test. */
export function server(options: ServerOptions = {}): Server {
  const { SAJOU_URL: url, SAJOU_TOKEN: token } = process.env;
  if (!url || !token) throw new Error("SAJOU_URL and SAJOU_TOKEN name the server of the tests; .ci/clients sets them");
  return new Server(url, { token, timeout: 10_000, ...options });
}

/** Returns a name that no session has. */
export function newSession(): string {
  return `typescript-${crypto.randomUUID().slice(0, 13)}`;
}

/** Reads a file of clients/testdata, with exact numbers. */
export function data(path: string): Exact {
  return parse(readFileSync(new URL(path, testdata), "utf8"));
}

/** Returns the names of the scenarios. */
export function scenarios(): string[] {
  return readdirSync(fileURLToPath(new URL("scenarios/", testdata))).filter((name) => name.endsWith(".json"));
}
