"""Everything that is not in the scenarios, against the real server."""

import random
import threading
import unittest
from typing import Any, Dict, Optional, Tuple

from sajou import (
    AECEnv, Agent, ConnectionEnded, Director, ParallelEnv, Problem, Recorder, Simulation, Spec, Transition, World, signal,
)  # fmt: skip
from sajou.environment import _Env

from .real import new_session, server

EPISODE = {
    "director": 1, "id": "door", "title": "The door", "situation": "A closed door. Rain.", "genre": "mystery", "turn_budget": 10,
    "beats": [{
        "id": "knock", "description": "somebody knocks", "character_instruction": "Knock.", "target_turn": 1, "deadline_turn": 3,
        "detection_type": "keyword", "detection_criteria": "knock",
        "choice_point": {"id": "open", "prompt": "Open?", "choices": [
            {"id": "yes", "label": "I open it.", "sets_flag": "opened"}, {"id": "no", "label": "I wait."},
        ]},
    }],
}  # fmt: skip


class ServerTest(unittest.TestCase):
    def test_a_turn_of_the_director(self) -> None:
        director = Director(server(), new_session())
        self.assertEqual(director.start(EPISODE).episode, "door")
        guidance = director.guide(1, "Hello?")
        self.assertEqual(guidance, director.guide(1, "Hello?"), "a repeat has the first answer")
        assert guidance.directive is not None
        self.assertEqual(guidance.directive.beat_id, "knock")
        self.assertIn("Knock.", guidance.section)
        response = director.respond(1, "A knock at the door.", before=[{"role": "user", "text": "Hello?"}])
        assert response.choice is not None
        self.assertEqual(response.choice.options, {"yes": "I open it.", "no": "I wait."})
        self.assertEqual([n.beat_id for n in response.landed], ["knock"])
        with self.assertRaises(Problem) as refused:
            director.guide(2, "typed")
        self.assertEqual((refused.exception.status, refused.exception.code), (409, "in-use"))
        choice = director.choose("open", "yes")
        assert choice.message is not None
        self.assertEqual((choice.flag, choice.message.role, choice.message.content), ("opened", "user", "I open it."))
        self.assertTrue(director.choose("open", "yes").again)
        self.assertEqual(director.guide(2).turn, 2)
        with self.assertRaises(Problem) as refused:
            director.guide(0)
        self.assertEqual((refused.exception.code, refused.exception.pointer), ("invalid", "/turn"))

    def test_a_key_records_once(self) -> None:
        name = new_session()
        recorder = Recorder(server(), name)
        one = signal("user.note", {"text": "é 😀", "exact": 2.0}, source="test")
        first = recorder.record(one, key="k")
        again = recorder.record(one, key="k")
        self.assertEqual((first.repeat, again.repeat), (False, True))
        self.assertEqual((first.head, first.first), (again.head, again.first))
        many = recorder.record([signal("user.note", {}, source="test", correlation_id="c", metadata={"n": n}) for n in range(3)], expect=first.head)
        self.assertEqual((many.signals, many.session), (3, name))
        with self.assertRaises(Problem) as refused:
            recorder.record(one, expect=first.head)
        self.assertEqual((refused.exception.code, refused.exception.status), ("conflict", 409))
        with self.assertRaises(Problem) as refused:
            recorder.record({"type": "tool_call", "payload": {}})
        self.assertEqual(refused.exception.status, 422)
        self.assertEqual(recorder.record({**one, "type": "tool_call", "payload": {}}, lenient=True).flagged, 1)

    def test_two_holders_and_two_agents(self) -> None:
        where, name = server(), new_session()
        with self.assertRaises(ConnectionEnded) as ended:
            Agent(where, name, "alice")
        self.assertEqual(ended.exception.code, 4004)
        World(where, name).begin(time="manual", config={"cooldowns": "off"})
        World(where, name).register("alice")
        with Simulation(where, name) as holder:
            with self.assertRaises(ConnectionEnded) as ended:
                Simulation(where, name)
            self.assertEqual(ended.exception.code, 4007)
            with self.assertRaises(Exception) as refused:
                holder.tick(1e18)
            self.assertIn("292 years", str(refused.exception))
            self.assertEqual(holder.tick(1).sim_time, 1)
        with Agent(where, name, "alice") as first:
            first.observe()
            with Agent(where, name, "alice") as second:
                with self.assertRaises(ConnectionEnded) as ended:
                    first.observe()
                self.assertEqual(ended.exception.code, 4005)
                seen = second.observe()
                assert seen is not None
            with Agent(where, name, "alice", view=seen.view, view_seq=seen.view_seq) as third:
                self.assertIsNone(third.observe(0.05), "the view that it has does not come again")
                World(where, name).remove("alice")
                with self.assertRaises(ConnectionEnded) as ended:
                    third.observe()
                self.assertEqual(ended.exception.code, 4006)
        self.assertFalse([t.name for t in threading.enumerate() if name in t.name], "a closed connection has no thread")


SIDE = 5
WAYS = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}


def meadow(rng: random.Random) -> Dict[str, Any]:
    """Ants and the food that they look for, on different fields."""
    fields = rng.sample(range(SIDE * SIDE), 3)
    places = {name: [field % SIDE, field // SIDE, 0] for name, field in zip(("food", "ann", "bob"), fields)}
    entities = {name: {"type": "food" if name == "food" else "agent", "position": place} for name, place in places.items()}
    return {"entities": entities, "spatial_index": places}


def walk(agent: str, view: Any, action: str) -> Optional[Tuple[str, Dict[str, Any]]]:
    if action not in WAYS:
        return None
    x, y, _ = view["visible_entities"][agent]["position"]
    return "Move", {"to": [x + WAYS[action][0], y + WAYS[action][1], 0]}


def fed(t: Transition) -> bool:
    food = t.after["visible_entities"].get("food")
    at = t.after["visible_entities"][t.agent]["position"]
    return food is not None and abs(food["position"][0] - at[0]) + abs(food["position"][1] - at[1]) <= 1


SPEC = Spec(
    policies={"ann": {"policy": "distance", "limit": 20}, "bob": {"policy": "distance", "limit": 20}}, world=meadow, intent=walk,
    reward=lambda t: 1 if fed(t) else -0.25, terminated=fed, max_steps=6, config={"cooldowns": "off"},
    action_space=lambda _: sorted(WAYS), action_mask=lambda agent, view: [True] * len(WAYS),
)  # fmt: skip


def to_the_food(agent: str, view: Any) -> str:
    food, at = view["visible_entities"]["food"]["position"], view["visible_entities"][agent]["position"]
    dx, dy = food[0] - at[0], food[1] - at[1]
    if abs(dx) >= abs(dy):
        return "east" if dx > 0 else "west"
    return "south" if dy > 0 else "north"


class EnvironmentTest(unittest.TestCase):
    def test_parallel(self) -> None:
        stories = []
        for _ in range(2):
            with ParallelEnv(server(), new_session(), SPEC) as env:
                observations, infos = env.reset(seed=7)
                self.assertEqual((env.agents, env.max_num_agents, list(infos["ann"])), (["ann", "bob"], 2, ["outcome", "action_mask"]))
                story: list = [observations]
                while env.agents:
                    result = env.step({agent: to_the_food(agent, observations[agent]) for agent in env.agents})
                    observations, rewards, terminations, truncations, infos = result
                    for agent, info in infos.items():
                        self.assertTrue(info["outcome"] is None or info["outcome"].accepted, info)
                        self.assertEqual(rewards[agent] == 1, terminations[agent])
                        self.assertFalse(terminations[agent] and truncations[agent])
                    story.append((observations, rewards, terminations, truncations))
                self.assertLessEqual(len(story), 7)
                self.assertEqual(env.step({})[0], {})
            stories.append(story)
        self.assertEqual(stories[0], stories[1], "the same seed and actions give the same episode")

    def test_seeds_and_refusals(self) -> None:
        with ParallelEnv(server(), new_session(), SPEC) as env:
            self.assertRaises(RuntimeError, env.step, {})
            first, _ = env.reset(seed=1)
            self.assertNotEqual(env.reset(seed=2)[0], first)
            with self.assertRaises(ValueError):
                env.step({"carol": "north"})
            self.assertEqual(env.action_spaces, {"ann": sorted(WAYS), "bob": sorted(WAYS)})

    def test_cycle(self) -> None:
        with AECEnv(server(), new_session(), SPEC) as env:
            env.reset(seed=7)
            turns, rewards = [], {"ann": 0.0, "bob": 0.0}
            for agent in env.agent_iter():
                observation, reward, termination, truncation, info = env.last()
                rewards[agent] += reward
                turns.append(agent)
                done = termination or truncation
                if done:
                    self.assertRaises(ValueError, env.step, "north")
                env.step(None if done else to_the_food(agent, observation))
            self.assertEqual(env.agents, [])
            self.assertEqual(turns[:2], ["ann", "bob"])
            self.assertGreaterEqual(max(rewards.values()), 1 - 0.25 * 5)
            self.assertRaises(RuntimeError, env.step, None)
            self.assertIsInstance(env.unwrapped, _Env)
