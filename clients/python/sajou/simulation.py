"""A simulation: a game engine that holds the time of a session."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import Future
from typing import Any, Dict, List, Optional, Tuple

from .errors import ProtocolError, RequestFailed
from .link import Link, await_result, failing, log, settle
from .messages import Effect, Outcome, Ticked, effect_of, member, number, outcome_of
from .server import Backoff, Server

__all__ = ["Simulation"]


class Simulation(Link):
    """The holder of a session's time; there is one. It is safe for concurrent use.

        with Simulation(Server(token=token), "village") as sim:
            sim.draft("Collision", {"with": "wall"}, source_id="physics")
            result = sim.tick(sim.sim_time + 0.02, delta_time=0.02)
            for effect in result.effects:
                ...

    seq continues after the effects of that entry; without it the effects of the future come.
    When the connection is lost, the simulation connects again and continues without a gap of
    effects; drafts and ticks that wait for their answer fail with RequestFailed, since a draft
    is not idempotent. max_effects bounds the effects that wait to be read.
    """

    def __init__(
        self, server: Server, session: str, *, seq: Optional[int] = None, backoff: Backoff = Backoff(), timeout: float = 30.0,
        max_effects: int = 65536,
    ) -> None:  # fmt: skip
        super().__init__(server, server.path(session, "sim", "ws"), "sajou.sim.v1", backoff)
        self.session = session
        self._timeout = timeout
        self._max_effects = max_effects
        self._ticking = threading.Lock()  # one tick at a time
        # All of these are guarded by _changed.
        self._seq = seq
        self._sim_time = 0.0
        self._time = ""
        self._effects: List[Effect] = []
        self._requests: Dict[str, "Future[Outcome]"] = {}
        self._tick: Optional["Future[Tuple[float, int, int, int]]"] = None
        self._connect()

    @property
    def sim_time(self) -> float:
        """Session time in seconds, as of the welcome or the last tick."""
        with self._changed:
            return self._sim_time

    @property
    def time(self) -> str:
        """The time authority of the session: sim, manual or wall."""
        with self._changed:
            return self._time

    @property
    def seq(self) -> Optional[int]:
        """The newest entry whose effects were received."""
        with self._changed:
            return self._seq

    def tick(
        self, sim_time: float, *, delta_time: Optional[float] = None, frame_number: Optional[int] = None, source_id: Optional[str] = None,
        timeout: Optional[float] = None,
    ) -> Ticked:  # fmt: skip
        """Move session time to sim_time, in seconds, and decide what waits. Return when the tick
        is durable."""
        message: Dict[str, Any] = {"type": "tick", "sim_time": sim_time}
        optional = {"delta_time": delta_time, "frame_number": frame_number, "source_id": source_id}
        message.update({name: value for name, value in optional.items() if value is not None})
        with self._ticking:
            answer: "Future[Tuple[float, int, int, int]]" = Future()
            with self._changed:
                self._check()
                if self._tick is not None:
                    raise RequestFailed("tick", "waiting", "an earlier tick has no answer yet; wait for it")
                self._tick = answer
            if not self._send(message):
                self._settle_tick(failing("tick", "lost", "there is no connection at this moment; tick again"))
            at, decided, waiting, seq = await_result(answer, self._timeout if timeout is None else timeout, "the tick")
            return Ticked(at, decided, waiting, seq, self.take_effects())

    def take_effects(self) -> List[Effect]:
        """Return the effects that came since they were last taken, also by a tick."""
        with self._changed:
            effects, self._effects = self._effects, []
            return effects

    def draft(
        self, kind: str, payload: Optional[Dict[str, Any]] = None, *, source_id: str, sim_time: Optional[float] = None, priority: int = 0,
        schema_version: Optional[str] = None, uuid: Optional[str] = None,
    ) -> "Future[Outcome]":  # fmt: skip
        """Make an effect from outside of the world. Where ticks decide, the outcome comes with the
        next one. A draft that is sent twice happens twice: give a uuid, and look for it among the
        effects after a fault."""
        message = {"type": "draft", "req_id": _new_id(), "kind": kind, "payload": payload or {}, "source_id": source_id}
        return self._submit(message, sim_time=sim_time, priority=priority or None, schema_version=schema_version, uuid=uuid)

    def intent(
        self, agent_id: str, kind: str, payload: Optional[Dict[str, Any]] = None, *, context_seq: int, req_id: Optional[str] = None,
        sim_time: Optional[float] = None, priority: int = 0, schema_version: Optional[str] = None,
    ) -> "Future[Outcome]":  # fmt: skip
        """Submit an intent of an agent that the simulation plays; the token must permit to act as it."""
        message = {
            "type": "intent", "req_id": req_id or _new_id(), "agent_id": agent_id, "kind": kind, "payload": payload or {},
            "context_seq": context_seq,
        }  # fmt: skip
        return self._submit(message, sim_time=sim_time, priority=priority or None, schema_version=schema_version)

    def _submit(self, message: Dict[str, Any], **optional: Any) -> "Future[Outcome]":
        message.update({name: value for name, value in optional.items() if value is not None})
        answer: "Future[Outcome]" = Future()
        req_id = message["req_id"]
        with self._changed:
            self._check()
            if req_id in self._requests:
                raise ValueError(f"request {req_id!r} waits for its outcome already")
            self._requests[req_id] = answer
        if not self._send(message):
            self._settle(req_id, failing(req_id, "lost", "there is no connection at this moment; send it again"))
        return answer

    def _settle(self, req_id: str, how: Any) -> bool:
        with self._changed:
            answer = self._requests.pop(req_id, None)
        if answer is None:
            return False
        settle(answer, how)
        return True

    def _settle_tick(self, how: Any) -> None:
        with self._changed:
            answer, self._tick = self._tick, None
        if answer is not None:
            settle(answer, how)

    # The link.

    @staticmethod
    def _temporary(why: BaseException) -> bool:
        # The server may not have seen the end of this program's earlier connection.
        return Link._temporary(why) or getattr(why, "code", None) == 4007

    def _hello(self) -> Dict[str, Any]:
        with self._changed:
            return {"type": "hello"} if self._seq is None else {"type": "hello", "seq": self._seq}

    def _welcomed(self, welcome: Dict[str, Any]) -> None:
        with self._changed:
            self._sim_time = number(welcome, "sim_time")
            self._time = member(welcome, "time", str)
            if self._seq is None:
                self._seq = member(welcome, "seq", int)

    def _lost(self, why: BaseException, last: bool) -> None:
        with self._changed:
            requests = list(self._requests)
        for req_id in requests:
            self._settle(req_id, failing(req_id, "lost", f"{why}; what was not decided was withdrawn"))
        self._settle_tick(failing("tick", "lost", f"{why}; read sim_time, and tick again"))

    def _received(self, message: Dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "effect":
            seq = member(message, "seq", int)
            effect = effect_of(member(message, "effect", dict), seq, number(message, "at_ms"))
            with self._changed:
                if self._seq is not None and seq <= self._seq:
                    return
                if len(self._effects) >= self._max_effects:
                    raise ProtocolError(f"{self._max_effects} effects wait to be read; call take_effects or tick more often")
                self._seq = seq
                self._effects.append(effect)
        elif kind == "ticked":
            at, seq = number(message, "sim_time"), member(message, "seq", int)
            result = (at, member(message, "decided", int), member(message, "waiting", int), seq)
            with self._changed:
                self._sim_time, self._seq = max(at, self._sim_time), max(seq, self._seq or 0)
            self._settle_tick(lambda: result)
        elif kind == "outcome":
            outcome = outcome_of(message)
            self._settle(outcome.req_id, lambda: outcome)
        elif kind == "error":
            code, detail, req_id = member(message, "code", str), member(message, "detail", str), message.get("req_id")
            how = failing(str(req_id or "tick"), code, detail)
            if req_id is None and code in ("bad_tick", "unavailable"):
                self._settle_tick(how)
            elif not self._settle(str(req_id), how):
                log.warning("sajou: the server answered %s: %s", code, detail)


def _new_id() -> str:
    return uuid.uuid4().hex
