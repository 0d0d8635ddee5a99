"""Plays the scenarios that all clients play; testdata/README.md describes the steps."""

import json
import unittest
from typing import Any, Dict

from sajou import Agent, Backoff, Refused, Simulation, World

from .real import TESTDATA, new_session, server

QUICK = Backoff(first=0.02, most=0.5)


class ScenarioTest(unittest.TestCase):
    def test_scenarios(self) -> None:
        paths = sorted((TESTDATA / "scenarios").glob("*.json"))
        self.assertGreaterEqual(len(paths), 5)
        for path in paths:
            with self.subTest(path.stem):
                self.play(json.loads(path.read_text(encoding="utf-8")))

    def play(self, story: Dict[str, Any]) -> None:
        where, name = server(), new_session()
        self.world = World(where, name)
        self.world.begin(time=story["time"], config=story["config"], world=story["world"])
        for agent, policy in story["agents"].items():
            self.world.register(agent, policy=policy)
        self.futures: Dict[str, Any] = {}
        self.generations: Dict[str, Any] = {}
        self.links: Dict[str, Any] = {}
        if story.get("simulation"):
            self.links["simulation"] = Simulation(where, name, backoff=QUICK, timeout=10)
        try:
            for agent in story["agents"]:
                self.links[agent] = Agent(where, name, agent, backoff=QUICK, timeout=10)
            for i, step in enumerate(story["steps"]):
                with self.subTest(step=i, **{"what": next(iter(step.items()))}):
                    getattr(self, "do_" + next(iter(step)))(**step)
        finally:
            for link in self.links.values():
                link.close()

    def do_observe(self, observe: str, **want: Any) -> None:
        seen = self.links[observe].observe()
        assert seen is not None
        for name in ("view_seq", "full"):
            if name in want:
                self.assertEqual(getattr(seen, name), want[name], name)
        self.assertEqual(seen.missed, 0)
        for pointer, value in want.get("at", {}).items():
            self.assertEqual(at(seen.view, pointer), value, pointer)

    def do_quiet(self, quiet: str) -> None:
        self.assertEqual(self.world.view(quiet)["view_seq"], self.links[quiet].view_seq)
        self.assertIsNone(self.links[quiet].observe(0))

    def do_act(self, act: str, expect: Dict[str, str], **intent: Any) -> None:
        self.compare(self.links[act].act(**intent), expect)

    def do_submit(self, submit: str, **intent: Any) -> None:
        self.futures[intent["req_id"]] = self.links[submit].submit(**intent)

    def do_outcome(self, outcome: str, expect: Dict[str, str]) -> None:
        self.compare(self.futures[outcome].result(10), expect)

    def do_cancel(self, cancel: str, req_id: str, found: bool) -> None:
        self.assertEqual(self.links[cancel].cancel(req_id), found)

    def do_begin(self, begin: str, req_id: str, code: str = "", **more: Any) -> None:
        if not code:
            self.generations[req_id] = self.links[begin].begin(req_id=req_id, **more)
            return
        with self.assertRaises(Refused) as refused:
            self.links[begin].begin(req_id=req_id, **more)
        self.assertEqual(refused.exception.outcome.rejection.code, code)

    def do_write(self, write: str, text: str) -> None:
        self.generations[write].write(text)

    def do_end(self, end: str, finish: str) -> None:
        self.assertEqual(self.generations[end].end().finish, finish)

    def do_stopped(self, stopped: str, code: str, reason: str) -> None:
        self.assertTrue(self.generations[stopped].wait(10))
        why = self.generations[stopped].stopped
        self.assertEqual(why.code, code)
        self.assertTrue(why.reason.startswith(reason), why.reason)

    def do_reconnect(self, reconnect: str) -> None:
        self.links[reconnect].reconnect()

    def do_draft(self, draft: str, **more: Any) -> None:
        self.futures[draft] = self.links["simulation"].draft(**more)

    def do_intent(self, intent: str, agent: str, **more: Any) -> None:
        self.futures[intent] = self.links["simulation"].intent(agent, req_id=intent, **more)

    def do_tick(self, tick: float, decided: int, effects: Any) -> None:
        simulation = self.links["simulation"]
        self.assertTrue(simulation.wait_connected(10))
        ticked = simulation.tick(tick)
        self.assertEqual(ticked.decided, decided)
        self.assertEqual([e.kind for e in ticked.effects], effects)

    def compare(self, outcome: Any, expect: Dict[str, str]) -> None:
        self.assertEqual(outcome.status, expect["status"], outcome)
        if "code" in expect:
            self.assertEqual(outcome.rejection.code, expect["code"])


def at(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer, None if there is none."""
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(token)] if int(token) < len(value) else None
        else:
            value = value.get(token) if isinstance(value, dict) else None
    return value
