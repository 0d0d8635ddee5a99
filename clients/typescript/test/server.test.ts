/** Everything that is not in the scenarios, against the real server. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Agent, ConnectionEnded, Director, ExactNumber, Recorder, RequestFailed, Simulation, World, watch } from "../src/index.js";
import { newSession, server } from "./real.js";

const episode = {
  director: 1, id: "door", title: "The door", situation: "A closed door. Rain.", genre: "mystery", turn_budget: 10,
  beats: [{
    id: "knock", description: "somebody knocks", character_instruction: "Knock.", target_turn: 1, deadline_turn: 3,
    detection_type: "keyword", detection_criteria: "knock",
    choice_point: { id: "open", prompt: "Open?", choices: [{ id: "yes", label: "I open it.", sets_flag: "opened" }, { id: "no", label: "I wait." }] },
  }],
};

describe("against the real server", () => {
  test("a turn of the director", async () => {
    const director = new Director(server(), newSession());
    assert.equal((await director.start(episode)).episode, "door");
    const guidance = await director.guide(1, "Hello?");
    assert.deepEqual(await director.guide(1, "Hello?"), guidance, "a repeat has the first answer");
    assert.equal(guidance.directive?.beat_id, "knock");
    const response = await director.respond(1, "A knock at the door.", { before: [{ role: "user", text: "Hello?" }] });
    assert.deepEqual(response.choice?.choices, [{ id: "yes", label: "I open it." }, { id: "no", label: "I wait." }]);
    assert.deepEqual(response.landed.map((l) => l.beat_id), ["knock"]);
    await assert.rejects(director.guide(2, "typed"), { name: "Problem", status: 409, code: "in-use" });
    const choice = await director.choose("open", "yes");
    assert.equal(choice.message?.content, "I open it.");
    assert.equal(choice.flag, "opened");
    assert.equal((await director.choose("open", "yes")).again, true);
    assert.equal((await director.guide(2)).turn, 2);
    await assert.rejects(director.guide(0), { code: "invalid", pointer: "/turn" });
  });

  test("a key records once, and a watcher sees it", async () => {
    const session = newSession();
    const recorder = new Recorder(server(), session);
    const signal = { type: "user.note", payload: { text: "é 😀", exact: ExactNumber.float(2) } };
    const first = await recorder.record(signal, { key: "k" });
    const again = await recorder.record({ ...signal }, { key: "k" });
    assert.deepEqual(again, { ...first, repeat: true });
    const many = await recorder.record([signal, signal], { expect: first.head });
    assert.equal(many.signals, 2);
    await assert.rejects(recorder.record(signal, { expect: first.head }), { status: 409, code: "conflict" });
    await assert.rejects(recorder.record({ type: "tool_call", payload: {} }), { status: 422 });
    assert.equal((await recorder.record({ type: "tool_call", payload: {} }, { lenient: true })).flagged, 1);
    const stop = new AbortController();
    const seen: unknown[] = [];
    for await (const entry of watch(server(), session, { from: 1, type: "user.note", signal: stop.signal })) {
      seen.push((entry.data as { signal?: { type: string } }).signal?.type ?? entry.data);
      if (seen.length === 3) stop.abort();
    }
    assert.equal(seen.length, 3);
    await assert.rejects(watch(server({ token: "wrong" }), session).next(), { status: 401 });
  });

  for (const transport of ["websocket", "events"] as const) {
    test(`ends of connections over ${transport}`, async () => {
      const where = server();
      const session = newSession();
      const connect = (): Promise<Agent> => Agent.connect(where, session, "alice", { transport });
      await assert.rejects(connect(), transport === "events" ? { name: "Problem", status: 404 } : { name: "ConnectionEnded", code: 4004 });
      const world = new World(where, session);
      await world.begin({ time: "manual", config: { cooldowns: "off" } });
      await world.register("alice");
      const first = await connect();
      await first.observe();
      const second = await connect();
      await assert.rejects(first.observe(), (e) => e instanceof ConnectionEnded && e.code === 4005);
      await assert.rejects(first.submit("Speak", { text: "x" }), ConnectionEnded);
      await second.observe();
      await world.remove("alice");
      await assert.rejects(second.observe(), (e) => e instanceof ConnectionEnded && e.code === 4006);
    });
  }

  test("one simulation", async () => {
    const where = server();
    const session = newSession();
    await new World(where, session).begin({ time: "manual", config: { cooldowns: "off" } });
    const holder = await Simulation.connect(where, session);
    await assert.rejects(Simulation.connect(where, session), { name: "ConnectionEnded", code: 4007 });
    await assert.rejects(holder.tick(1e18), (e) => e instanceof RequestFailed && e.code === "bad_tick");
    assert.equal((await holder.tick(1)).sim_time, 1);
    assert.equal(holder.simTime, 1);
    const waiting = holder.tick(2);
    holder.close();
    await assert.rejects(waiting, RequestFailed);
    await assert.rejects(holder.tick(3), ConnectionEnded);
  });

  test("a wrong token", async () => {
    await assert.rejects(Agent.connect(server({ token: "wrong" }), newSession(), "alice"), { name: "ConnectionEnded", code: 4001 });
    await assert.rejects(new Recorder(server({ token: "wrong" }), newSession()).record({ type: "event", payload: {} }), { status: 401 });
  });
});
