/** JSON Patch (RFC 6902) on exact values, with the operations of the protocol: add, remove, replace. */

import { ProtocolError } from "./errors.js";
import type { Exact } from "./exact.js";

/** A patch does not apply to the value. */
export class PatchError extends ProtocolError {}

type Container = Exact[] | Map<string, Exact>;

/**
 * Returns the value after a patch. The value itself does not change: containers on the way to a
 * change are copied, once for a patch, and all others are shared.
 */
export function apply(value: Exact, patch: Exact): Exact {
  if (!Array.isArray(patch)) throw new PatchError("a patch is an array");
  const own = new Set<Exact>(); // the containers that this patch has made
  let root = value;
  const mine = (node: Exact | undefined, fail: (why: string) => never): Container => {
    if (!(Array.isArray(node) || node instanceof Map)) return fail("the path leads nowhere");
    if (own.has(node)) return node;
    const copy = Array.isArray(node) ? node.slice() : new Map(node);
    own.add(copy);
    return copy;
  };
  patch.forEach((operation, i) => {
    const fail = (why: string): never => {
      throw new PatchError(`operation ${i} of the patch does not apply: ${why}`);
    };
    if (!(operation instanceof Map)) return fail("it is not an object");
    const kind = operation.get("op");
    const path = operation.get("path");
    const added = operation.get("value");
    if (kind !== "add" && kind !== "remove" && kind !== "replace") return fail("its op is unknown");
    if (typeof path !== "string" || (path !== "" && !path.startsWith("/"))) return fail("its path is not a JSON Pointer");
    if (kind !== "remove" && added === undefined) return fail("it has no value");
    const tokens = path.split("/").slice(1).map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = tokens.pop();
    if (last === undefined) {
      root = kind === "remove" ? fail("the whole value cannot be removed") : (added as Exact);
      return;
    }
    let at = (root = mine(root, fail));
    for (const token of tokens) {
      const child = mine(get(at, token), fail);
      put(at, token, child);
      at = child;
    }
    if (kind === "add") {
      if (Array.isArray(at)) at.splice(last === "-" ? at.length : (index(last, at.length) ?? fail(`there is no element ${last}`)), 0, added as Exact);
      else at.set(last, added as Exact);
    } else if (get(at, last) === undefined) {
      fail(`there is no ${last}`);
    } else if (kind === "replace") {
      put(at, last, added as Exact);
    } else if (Array.isArray(at)) {
      at.splice(Number(last), 1);
    } else {
      at.delete(last);
    }
  });
  return root;
}

function get(at: Container, token: string): Exact | undefined {
  if (!Array.isArray(at)) return at.get(token);
  const i = index(token, at.length - 1);
  return i === undefined ? undefined : at[i];
}

/** Replaces a member or an element that is there. */
function put(at: Container, token: string, value: Exact): void {
  if (Array.isArray(at)) at[Number(token)] = value;
  else at.set(token, value);
}

/** Reads an index up to most. */
function index(token: string, most: number): number | undefined {
  return /^(0|[1-9]\d{0,8})$/.test(token) && Number(token) <= most ? Number(token) : undefined;
}
