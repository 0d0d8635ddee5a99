"""Environments in the form of PettingZoo over a world of the server.

An episode is a session of its own: the program's simulation holds its time, each step is a
tick, and each agent sees what its policy allows. PettingZoo itself is not needed; the classes
have its methods and attributes, so what is written for its environments runs with them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .agent import Agent
from .errors import ProtocolError
from .link import await_result
from .messages import Effect, Outcome, View, member
from .server import Server
from .simulation import Simulation
from .world import World

__all__ = ["AECEnv", "ParallelEnv", "Spec", "Transition"]

StepResult = Tuple[Dict[str, Any], Dict[str, float], Dict[str, bool], Dict[str, bool], Dict[str, Dict[str, Any]]]


@dataclass(frozen=True)
class Transition:
    """A step as it concerns one agent: the views that it had before and after, the outcome of its
    action (None if it did nothing), and all effects of the step, seen or not."""

    agent: str
    step: int
    before: View
    after: View
    outcome: Optional[Outcome]
    effects: Sequence[Effect]


def _never(_: Transition) -> bool:
    return False


def _nothing(_: str) -> Any:
    return None


@dataclass(frozen=True)
class Spec:
    """The program's part of an environment. All functions must be pure, or episodes of the same
    seed differ.

    policies     the agents that may take part, in order, with the observation policy of each
    world        the entities and relationships to begin with; all randomness is from its argument
    intent       kind and payload of an action of an agent with this view; None does nothing
    observation  what an agent's view is to the program; by default the view itself
    reward, terminated, truncated   judge a step for one agent
    action_mask  which actions an agent may take next, for its info
    max_steps    truncates all agents after so many steps (in an AECEnv, turns); 0 is without end
    delta        the seconds of a step
    config       the configuration of the world, in which ticks decide
    """

    policies: Mapping[str, Mapping[str, Any]]
    world: Callable[[random.Random], Mapping[str, Any]]
    intent: Callable[[str, View, Any], Optional[Tuple[str, Dict[str, Any]]]]
    observation: Callable[[str, View], Any] = lambda _, view: view
    reward: Callable[[Transition], float] = lambda _: 0.0
    terminated: Callable[[Transition], bool] = _never
    truncated: Callable[[Transition], bool] = _never
    action_mask: Optional[Callable[[str, View], Any]] = None
    max_steps: int = 0
    delta: float = 1.0
    config: Mapping[str, Any] = field(default_factory=dict)
    observation_space: Callable[[str], Any] = _nothing
    action_space: Callable[[str], Any] = _nothing

    def __post_init__(self) -> None:
        if not self.policies:
            raise ValueError("an environment needs an agent")
        if self.delta <= 0 or self.max_steps < 0:
            raise ValueError("delta is above 0, max_steps not below")


class _Episode:
    """One episode: a session with its simulation and its agents."""

    def __init__(self, server: Server, session: str, spec: Spec, seed: int) -> None:
        self.spec = spec
        self.timeout = server.timeout
        self.step = 0
        self.world = World(server, session)
        self.agents: Dict[str, Agent] = {}
        state = self.world.begin(time="sim", config={**spec.config, "authority": "sim"}, world=spec.world(random.Random(seed)))
        for agent, policy in spec.policies.items():
            self.world.register(agent, policy=policy)
        self.simulation = Simulation(server, session, seq=state.seq, timeout=server.timeout)
        try:
            for agent in spec.policies:
                self.agents[agent] = Agent(server, session, agent, timeout=server.timeout)
            for agent in spec.policies:
                self._catch_up(agent, 0)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for agent in self.agents.values():
            agent.close()
        self.simulation.close()

    def take(self, actions: Mapping[str, Any]) -> Dict[str, Transition]:
        """Take a step: the actions are one quantum, then time passes by delta."""
        before = {agent: link.view for agent, link in self.agents.items()}
        answers = {}
        for agent, link in self.agents.items():
            if agent not in actions:
                continue
            intent = self.spec.intent(agent, link.view, actions[agent])
            if intent is not None:
                kind, payload = intent
                # Over the connection of the simulation, so that it is decided by the tick behind it. Outcomes
                # there have no agent, so the req_id has it.
                answers[agent] = self.simulation.intent(
                    agent, kind, payload, context_seq=link.view_seq or 0, req_id=f"{agent}/{self.step + 1}"
                )  # fmt: skip
        ticked = self.simulation.tick((self.step + 1) * self.spec.delta, delta_time=self.spec.delta, frame_number=self.step + 1)
        outcomes = {agent: await_result(answer, self.timeout, f"the action of {agent!r}") for agent, answer in answers.items()}
        self.step += 1
        for agent in self.agents:
            self._catch_up(agent)
        return {
            agent: Transition(agent, self.step, before[agent], link.view, outcomes.get(agent), ticked.effects)
            for agent, link in self.agents.items()
        }

    def _catch_up(self, agent: str, at_least: Optional[int] = None) -> None:
        """Read what was delivered to an agent by now."""
        link = self.agents[agent]
        delivered: int = member(self.world.view(agent), "view_seq", int) if at_least is None else at_least
        while link.view_seq is None or link.view_seq < delivered:
            if link.observe() is None:
                raise ProtocolError(f"observation {delivered} of {agent!r} did not come in time")


class _Env:
    """What both forms of environments have in common. Its methods have the names of PettingZoo."""

    metadata: Dict[str, Any] = {"name": "sajou", "render_modes": [], "is_parallelizable": True}
    render_mode = None

    def __init__(self, server: Server, session: str, spec: Spec) -> None:
        self.spec = spec
        self.possible_agents: List[str] = list(spec.policies)
        self.agents: List[str] = []
        self._server = server
        self._session = session
        self._number = 0  # of the episode
        self._episode: Optional[_Episode] = None

    @property
    def unwrapped(self) -> "_Env":
        return self

    @property
    def num_agents(self) -> int:
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        return len(self.possible_agents)

    @property
    def observation_spaces(self) -> Dict[str, Any]:
        return {agent: self.observation_space(agent) for agent in self.possible_agents}

    @property
    def action_spaces(self) -> Dict[str, Any]:
        return {agent: self.action_space(agent) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> Any:
        return self.spec.observation_space(agent)

    def action_space(self, agent: str) -> Any:
        return self.spec.action_space(agent)

    def observe(self, agent: str) -> Any:
        """Return what an agent sees now."""
        return self.spec.observation(agent, self._running().agents[agent].view)

    def render(self) -> None:
        """Draw nothing: sajou-replay render draws the session of the episode."""

    def close(self) -> None:
        """End the connections of the episode. Its session stays in the log."""
        if self._episode is not None:
            self._episode.close()
            self._episode = None
        self.agents = []

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def session(self) -> str:
        """The session of the present episode."""
        return f"{self._session}.{self._number}"

    def _begin(self, seed: Optional[int]) -> None:
        self.close()
        self._number += 1
        self._episode = _Episode(self._server, self.session, self.spec, self._number if seed is None else seed)
        self.agents = list(self.possible_agents)

    def _running(self) -> _Episode:
        if self._episode is None:
            raise RuntimeError("there is no episode: call reset")
        return self._episode

    def _info(self, agent: str, outcome: Optional[Outcome]) -> Dict[str, Any]:
        info: Dict[str, Any] = {"outcome": outcome}
        if self.spec.action_mask is not None:
            info["action_mask"] = self.spec.action_mask(agent, self._running().agents[agent].view)
        return info

    def _take(self, actions: Mapping[str, Any]) -> StepResult:
        """Take a step, and judge it for the agents that take part."""
        episode = self._running()
        for agent in actions:
            if agent not in self.agents:
                raise ValueError(f"{agent!r} takes no part in this step")
        transitions = episode.take(actions)
        over = 0 < self.spec.max_steps <= episode.step
        result: StepResult = ({}, {}, {}, {}, {})
        for agent in self.agents:
            transition = transitions[agent]
            result[0][agent] = self.observe(agent)
            result[1][agent] = float(self.spec.reward(transition))
            result[2][agent] = self.spec.terminated(transition)
            result[3][agent] = not result[2][agent] and (over or self.spec.truncated(transition))
            result[4][agent] = self._info(agent, transition.outcome)
        return result


class ParallelEnv(_Env):
    """All agents act at once.

        env = ParallelEnv(server, "training", spec)
        observations, infos = env.reset(seed=42)
        while env.agents:
            actions = {agent: policy(observations[agent]) for agent in env.agents}
            observations, rewards, terminations, truncations, infos = env.step(actions)

    The session of episode n is SESSION.n, and must be new. The token needs the scopes define and
    tick, and may act as all agents. A refused action is in infos[agent]["outcome"]. Without a
    seed, the seed is the number of the episode.
    """

    def reset(self, seed: Optional[int] = None, options: Optional[Mapping[str, Any]] = None) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        """Begin an episode. Return the first observations and infos."""
        self._begin(seed)
        return {a: self.observe(a) for a in self.agents}, {a: self._info(a, None) for a in self.agents}

    def step(self, actions: Mapping[str, Any]) -> StepResult:
        """Take the actions of all agents. Return observations, rewards, terminations, truncations
        and infos; agents that have ended leave agents."""
        result = self._take(actions)
        _, _, terminations, truncations, _ = result
        self.agents = [a for a in self.agents if not (terminations[a] or truncations[a])]
        return result


class AECEnv(_Env):
    """The agents act one after the other, in the order of the spec, and each sees the effects of
    those before it.

        env = AECEnv(server, "training", spec)
        env.reset(seed=42)
        for agent in env.agent_iter():
            observation, reward, termination, truncation, info = env.last()
            env.step(None if termination or truncation else policy(observation))

    An agent that has ended has one more turn, before the others, and can only step(None). Each
    other turn is a tick. A None of an agent that has not ended passes.
    """

    rewards: Dict[str, float]
    terminations: Dict[str, bool]
    truncations: Dict[str, bool]
    infos: Dict[str, Dict[str, Any]]
    agent_selection: Optional[str]
    _cumulative_rewards: Dict[str, float]
    _next: Optional[str]  # the agent to act after those that have ended

    def reset(self, seed: Optional[int] = None, options: Optional[Mapping[str, Any]] = None) -> None:
        """Begin an episode. The first agent is to act."""
        self._begin(seed)
        self.rewards = {a: 0.0 for a in self.agents}
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = {a: False for a in self.agents}
        self.truncations = dict(self.terminations)
        self.infos = {a: self._info(a, None) for a in self.agents}
        self._next = self.agents[0]
        self._select()

    def agent_iter(self, max_iter: int = 1 << 63) -> Iterator[str]:
        """Iterate over the agents to act, until all have ended."""
        while self.agent_selection is not None and max_iter > 0:
            yield self.agent_selection
            max_iter -= 1

    def last(self, observe: bool = True) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        """Return what the agent to act needs: its observation, the rewards since it last acted,
        whether it has ended or was stopped, and its info."""
        agent = self._selected()
        seen = self.observe(agent) if observe else None
        return seen, self._cumulative_rewards[agent], self.terminations[agent], self.truncations[agent], self.infos[agent]

    def step(self, action: Any) -> None:
        """Take the turn of agent_selection."""
        agent = self._selected()
        if self.terminations[agent] or self.truncations[agent]:
            if action is not None:
                raise ValueError(f"{agent!r} has ended: its action must be None")
            self.agents.remove(agent)
            for of_agents in (self.rewards, self._cumulative_rewards, self.terminations, self.truncations, self.infos):
                del of_agents[agent]  # type: ignore[attr-defined]
            self._select()
            return
        _, self.rewards, self.terminations, self.truncations, infos = self._take({} if action is None else {agent: action})
        self._cumulative_rewards[agent] = 0.0
        for a in self.agents:
            self._cumulative_rewards[a] += self.rewards[a]
            outcome = infos[a]["outcome"] if a == agent else self.infos[a]["outcome"]
            self.infos[a] = {**infos[a], "outcome": outcome}
        at = self.possible_agents.index(agent)
        order = self.possible_agents[at + 1 :] + self.possible_agents[: at + 1]
        going = (a for a in order if a in self.agents and not (self.terminations[a] or self.truncations[a]))
        self._next = next(going, None)
        self._select()

    def close(self) -> None:
        super().close()
        self.agent_selection = None

    def _select(self) -> None:
        ended = (a for a in self.agents if self.terminations[a] or self.truncations[a])
        self.agent_selection = next(ended, self._next)

    def _selected(self) -> str:
        if self._episode is None or self.agent_selection is None:
            raise RuntimeError("no agent is to act: call reset")
        return self.agent_selection
