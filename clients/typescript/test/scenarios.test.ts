/** Plays the scenarios that all clients play; clients/testdata/README.md describes the steps. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Agent, type Exact, type Fields, type Generation, type Json, type Outcome, Refused, type Sendable, Simulation, World, plain } from "../src/index.js";
import { ExactNumber } from "../src/index.js";
import { data, newSession, scenarios, server } from "./real.js";

const quick = { backoff: { first: 20, most: 500, tries: Infinity }, timeout: 10_000 };

/** Returns an exact value as it can be sent. */
function sendable(value: Exact | undefined): Sendable {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(sendable);
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, member]) => [name, sendable(member)]));
  return value;
}

/** Returns the exact value at a JSON Pointer, null if there is none. */
function at(value: Exact, pointer: string): Exact {
  for (const token of pointer.split("/").slice(1)) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    value = (Array.isArray(value) ? value[Number(name)] : value instanceof Map ? value.get(name) : null) ?? null;
  }
  return value;
}

class Player {
  readonly links = new Map<string, Agent | Simulation>();
  readonly outcomes = new Map<string, Promise<Outcome>>();
  readonly generations = new Map<string, Generation>();
  constructor(readonly world: World) {}

  agent(name: string): Agent {
    const link = this.links.get(name);
    assert.ok(link instanceof Agent, name);
    return link;
  }

  get simulation(): Simulation {
    const link = this.links.get("simulation");
    assert.ok(link instanceof Simulation);
    return link;
  }

  generation(reqId: string): Generation {
    const found = this.generations.get(reqId);
    assert.ok(found, reqId);
    return found;
  }

  async step(exact: Map<string, Exact>): Promise<void> {
    const [what = ""] = exact.keys();
    const step = plain(exact) as { [name: string]: Json } & { expect: { status: string; code?: string } };
    const who = String(step[what]);
    const sent = sendable(exact) as { readonly [name: string]: Sendable };
    const payload = (sent["payload"] ?? {}) as Fields;
    const { [what]: _, agent, kind, payload: __, expect, code, decided, effects, ...options } = sent as any;
    switch (what) {
      case "observe": {
        const seen = await this.agent(who).observe();
        assert.ok(seen);
        for (const name of ["view_seq", "full"] as const) if (name in step) assert.equal(seen[name], step[name], name);
        assert.equal(seen.missed, 0);
        const places = exact.get("at");
        if (places instanceof Map) {
          for (const [pointer, want] of places) {
            const got = at(this.agent(who).exactView, pointer);
            const text = (v: Exact): Json => (v instanceof ExactNumber ? v.text : plain(v));
            assert.deepEqual(text(got), text(want), pointer);
          }
        }
        break;
      }
      case "quiet":
        assert.equal((await this.world.view(who)).view_seq, this.agent(who).viewSeq);
        assert.equal(await this.agent(who).observe(0), undefined);
        break;
      case "act":
        compare(await this.agent(who).submit(String(kind), payload, options), step.expect);
        break;
      case "submit":
        this.outcomes.set(String(step["req_id"]), this.agent(who).submit(String(kind), payload, options));
        break;
      case "outcome":
        compare(await (this.outcomes.get(who) as Promise<Outcome>), step.expect);
        break;
      case "cancel":
        assert.equal(await this.agent(who).cancel(String(step["req_id"])), step["found"]);
        break;
      case "begin":
        if (code === undefined) {
          this.generations.set(String(step["req_id"]), await this.agent(who).begin(options));
        } else {
          await assert.rejects(this.agent(who).begin(options), (e) => e instanceof Refused && e.outcome.rejection?.code === code);
        }
        break;
      case "write":
        this.generation(who).write(String(step["text"]));
        break;
      case "end":
        assert.equal((await this.generation(who).end()).finish, step["finish"]);
        break;
      case "stopped":
        await assert.rejects(this.generation(who).over, { name: "Stopped", code: step["code"] });
        assert.ok(this.generation(who).stopped?.reason.startsWith(String(step["reason"])));
        assert.ok(this.generation(who).signal.aborted);
        break;
      case "reconnect":
        this.links.get(who)?.reconnect();
        break;
      case "draft":
        this.outcomes.set(who, this.simulation.draft(String(kind), payload, options));
        break;
      case "intent":
        this.outcomes.set(who, this.simulation.intent(String(agent), String(kind), payload, { ...options, req_id: who }));
        break;
      case "tick": {
        await this.simulation.whenConnected();
        const ticked = await this.simulation.tick(Number(who));
        assert.equal(ticked.decided, step["decided"]);
        assert.deepEqual(ticked.effects.map((e) => e.effect.kind), step["effects"]);
        break;
      }
      default:
        assert.fail(`unknown step ${what}`);
    }
  }
}

function compare(outcome: Outcome, expect: { status: string; code?: string }): void {
  assert.equal(outcome.status, expect.status, JSON.stringify(outcome));
  if (expect.code !== undefined) assert.equal(outcome.rejection?.code, expect.code);
}

for (const transport of ["websocket", "events"] as const) {
  describe(`scenarios over ${transport}`, () => {
    for (const name of scenarios()) {
      test(name, async () => {
        const story = data(`scenarios/${name}`) as Map<string, Exact>;
        const where = server();
        const session = newSession();
        const player = new Player(new World(where, session));
        const time = story.get("time") as "sim" | "manual";
        await player.world.begin({ time, config: sendable(story.get("config")), world: sendable(story.get("world")) });
        const agents = story.get("agents") as Map<string, Exact>;
        for (const [agent, policy] of agents) await player.world.register(agent, { policy: sendable(policy) });
        try {
          if (story.get("simulation") === true) player.links.set("simulation", await Simulation.connect(where, session, quick));
          for (const agent of agents.keys()) player.links.set(agent, await Agent.connect(where, session, agent, { ...quick, transport }));
          for (const [i, step] of (story.get("steps") as Map<string, Exact>[]).entries()) {
            await player.step(step).catch((e: unknown) => {
              throw new Error(`step ${i}, ${[...step.keys()][0]}: ${String(e)}`, { cause: e });
            });
          }
        } finally {
          for (const link of player.links.values()) link.close();
        }
      });
    }
  });
}
