"""An agent of a session: what it sees, what it asks for, and what it generates."""

from __future__ import annotations

import uuid
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, Optional

from .errors import ConnectionEnded, ProtocolError, RequestFailed, Stopped
from .exact import digest
from .generation import Ended, Generation, Refused
from .link import Link, await_result, failing, log, send_on, settle
from .messages import Observation, Outcome, View, member, number, outcome_of
from .patch import PatchError, apply
from .server import Backoff, Server

__all__ = ["Agent"]

_EMPTY: View = {"visible_entities": {}, "visible_relationships": {}}

#: So many observations may wait to be read. The server sends no more than its window, 64.
_MAX_WAITING = 4096


@dataclass
class _Request:
    """An intent, a begin or a cancel that waits for its answer."""

    message: Dict[str, Any]
    answer: "Future[Any]"
    on_stop: Optional[Callable[[Stopped], None]] = None


class Agent(Link):
    """The connection of one agent. It is safe for concurrent use.

        with Agent(Server(token=token), "village", "alice") as alice:
            seen = alice.observe()
            outcome = alice.act("Speak", {"text": "Hello."})

    Observations arrive as deltas; observe applies them to the view, in order, and compares
    digests. When the network or the server fails, the agent connects again after the waits of
    backoff and continues: no observation is lost or comes twice, and intents without an
    outcome are sent again. Generations end with their connection.

    view and view_seq continue from an earlier connection of the same program. timeout, in
    seconds, bounds each wait. Without verify, digests are not compared.
    """

    def __init__(
        self, server: Server, session: str, agent: str, *, view: Optional[View] = None, view_seq: Optional[int] = None,
        backoff: Backoff = Backoff(), timeout: float = 30.0, verify: bool = True,
    ) -> None:  # fmt: skip
        if (view is None) != (view_seq is None):
            raise ValueError("view and view_seq belong together: give both or none")
        super().__init__(server, server.path(session, "agents", agent, "ws"), "sajou.agent.v1", backoff)
        self.session = session
        self.agent = agent
        self._timeout = timeout
        self._verify = verify
        # All of these are guarded by _changed.
        self._view: View = view or _EMPTY
        self._view_seq = view_seq
        self._digest = None if view is None else digest(agent, view)
        self._resyncing = False  # drops what comes until a full view
        self._waiting: Deque[Dict[str, Any]] = deque()  # observations that observe has not read
        self._intents: Dict[str, _Request] = {}
        self._begins: Dict[str, _Request] = {}
        self._cancels: Dict[str, _Request] = {}
        self._generations: Dict[str, Generation] = {}
        self._connect()

    # Observations.

    @property
    def view(self) -> View:
        """The view after the last observation that was read. Do not change it."""
        with self._changed:
            return self._view

    @property
    def view_seq(self) -> Optional[int]:
        """The number of the last observation that was read; None before the first."""
        with self._changed:
            return self._view_seq

    def observe(self, timeout: Optional[float] = None) -> Optional[Observation]:
        """Return the next observation, or None if none comes in timeout seconds. Raise the error
        of a connection that has ended for good."""
        limit = self._timeout if timeout is None else timeout
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting or self._failure is not None, limit):
                    return None
                if not self._waiting:
                    self._check()
                message, asked = self._waiting.popleft(), self._resyncing
                repeat = self._repeats(message)
                seen = None if repeat else self._apply(message)
                # On the connection that it came from: another one knows nothing of it.
                socket = self._socket
                ask = self._resyncing and not asked
            if seen is not None:
                send_on(socket, {"type": "ack", "view_seq": seen.view_seq})
                return seen
            if repeat:
                send_on(socket, {"type": "ack", "view_seq": message["view_seq"]})
            elif ask:
                send_on(socket, {"type": "resync"})

    def observations(self, timeout: Optional[float] = None) -> Iterator[Observation]:
        """Iterate over observations until none comes in timeout seconds."""
        while True:
            seen = self.observe(timeout)
            if seen is None:
                return
            yield seen

    def _repeats(self, message: Dict[str, Any]) -> bool:
        """Whether a full view is the one that the program has: the first one comes again to an
        agent that continues after it. The caller holds _changed."""
        same = message.get("view_seq") == self._view_seq and message.get("context_digest") == self._digest
        return same and message.get("full") is True and not self._resyncing and self._digest is not None

    def _apply(self, message: Dict[str, Any]) -> Optional[Observation]:
        """Apply an observation to the view. Return None if it does not fit: a full view is then
        asked for, unless it was. The caller holds _changed."""
        seq, patches, full = member(message, "view_seq", int), member(message, "patches", list), message.get("full") is True
        if not full and (self._resyncing or (self._view_seq is not None and seq <= self._view_seq)):
            return None
        self._resyncing = not full and self._view_seq is not None and seq != self._view_seq + 1
        if not self._resyncing:
            try:
                view = apply(self._view, patches)
                if self._verify and digest(self.agent, view) != message.get("context_digest"):
                    raise PatchError("the digest of the view is another")
            except (PatchError, KeyError) as e:
                if full:
                    raise ProtocolError(f"full view {seq} cannot be used: {e}") from e
                log.warning("sajou: observation %d: %s; asking for a full view", seq, e)
                self._resyncing = True
        if self._resyncing:
            return None
        self._view, self._view_seq, self._digest = view, seq, message.get("context_digest")
        return Observation(seq, view, patches, full, message.get("missed", 0), number(message, "at_ms"))

    # Intents.

    def act(self, kind: str, payload: Optional[Dict[str, Any]] = None, *, timeout: Optional[float] = None, **more: Any) -> Outcome:
        """Submit an intent and wait for its outcome. The arguments are those of submit."""
        limit = self._timeout if timeout is None else timeout
        return await_result(self.submit(kind, payload, **more), limit, f"the intent {kind}")

    def submit(
        self, kind: str, payload: Optional[Dict[str, Any]] = None, *, req_id: Optional[str] = None, context_seq: Optional[int] = None,
        priority: int = 0, schema_version: Optional[str] = None,
    ) -> "Future[Outcome]":  # fmt: skip
        """Submit an intent, and return its outcome to come. Without a context_seq it is based on
        the last observation that was read. Without a req_id it gets a new one. The future fails
        with RequestFailed if the store takes no entries; send the same req_id again then."""
        with self._changed:
            self._check()
            based = self._view_seq if context_seq is None else context_seq
            if based is None:
                raise ValueError("an intent is based on an observation: call observe first, or give context_seq")
            message: Dict[str, Any] = {
                "type": "intent", "req_id": req_id or uuid.uuid4().hex, "kind": kind, "payload": payload or {}, "context_seq": based,
            }  # fmt: skip
            if priority:
                message["priority"] = priority
            if schema_version is not None:
                message["schema_version"] = schema_version
            request = self._request(self._intents, message)
        self._send(message)
        return request.answer

    def cancel(self, req_id: str, timeout: Optional[float] = None) -> bool:
        """Cancel a generation, or an intent that waits for its tick. Return whether there was one."""
        with self._changed:
            self._check()
            message = {"type": "cancel", "req_id": req_id}
            request = self._request(self._cancels, message)
        self._send(message)
        try:
            return bool(await_result(request.answer, self._timeout if timeout is None else timeout, f"the cancel of {req_id!r}"))
        finally:
            self._take(self._cancels, req_id)

    # Generations.

    def begin(
        self, *, req_id: Optional[str] = None, context_seq: Optional[int] = None, reads: Iterable[str] = (), classes: Iterable[str] = (),
        deadline_ms: Optional[float] = None, token_budget: Optional[int] = None, on_stop: Optional[Callable[[Stopped], None]] = None,
        timeout: Optional[float] = None,
    ) -> Generation:  # fmt: skip
        """Begin a generation. Without a context_seq it is based on the newest observation that was
        delivered. on_stop is called in the thread of the connection when the world stops it, and
        must return soon. Raise Refused if it may not begin."""
        message: Dict[str, Any] = {"type": "begin", "req_id": req_id or uuid.uuid4().hex}
        optional = {
            "context_seq": context_seq, "reads": list(reads) or None, "classes": list(classes) or None,
            "deadline_ms": deadline_ms, "token_budget": token_budget,
        }  # fmt: skip
        message.update({name: value for name, value in optional.items() if value is not None})
        with self._changed:
            self._check()
            request = self._request(self._begins, message)
            request.on_stop = on_stop
        try:
            if not self._send(message):
                raise RequestFailed(message["req_id"], "lost", "there is no connection at this moment; begin again")
            generation: Generation = await_result(request.answer, self._timeout if timeout is None else timeout, "the begin of a generation")
            return generation
        finally:
            self._take(self._begins, message["req_id"])

    def _tell(self, message: Dict[str, Any], generation: Generation) -> None:
        """Send a message about a generation."""
        if not self._send(message):
            generation._stop(Stopped(generation.req_id, "LOST", "the connection ended"))

    def _forget(self, generation: Generation) -> None:
        """Drop a generation that an intent has ended."""
        with self._changed:
            if self._generations.get(generation.req_id) is generation:
                del self._generations[generation.req_id]

    @staticmethod
    def _request(waiting: Dict[str, _Request], message: Dict[str, Any]) -> _Request:
        """Note a request. The caller holds _changed."""
        req_id = message["req_id"]
        if req_id in waiting:
            raise ValueError(f"request {req_id!r} waits for its answer already")
        waiting[req_id] = request = _Request(message, Future())
        return request

    # The link.

    def _hello(self) -> Dict[str, Any]:
        with self._changed:
            # What waits unread was not applied, so it comes again.
            self._waiting.clear()
            hello: Dict[str, Any] = {"type": "hello"}
            if self._view_seq is not None and not self._resyncing:
                hello["view_seq"] = self._view_seq
            return hello

    def _welcomed(self, welcome: Dict[str, Any]) -> None:
        pass

    def _begun(self) -> None:
        with self._changed:
            again = [r.message for r in (*self._intents.values(), *self._cancels.values())]
        for message in again:
            self._send(message)

    def _lost(self, why: BaseException, last: bool) -> None:
        with self._changed:
            generations, self._generations = self._generations, {}
            begins, self._begins = self._begins, {}
            failed = dict(begins)
            if last:
                failed = {**self._intents, **self._cancels, **begins}
                self._intents, self._cancels = {}, {}
        for g in generations.values():
            g._stop(Stopped(g.req_id, "LOST", "the connection ended"))
        for req_id, request in failed.items():
            settle(request.answer, failing(req_id, "lost", f"{why}; send it again with the same req_id"))

    def _received(self, message: Dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "observation":
            with self._changed:
                if len(self._waiting) >= _MAX_WAITING:
                    raise ConnectionEnded(1000, "the server sent more observations than its window")
                self._waiting.append(message)
                self._changed.notify_all()
        elif kind == "outcome":
            outcome = outcome_of(message)
            begin = self._take(self._begins, outcome.req_id)
            if begin is not None:
                settle(begin.answer, lambda: _raise(Refused(outcome)))
            else:
                intent = self._take(self._intents, outcome.req_id)
                if intent is not None:
                    settle(intent.answer, lambda: outcome)
        elif kind == "begun":
            self._began(message)
        elif kind == "stop":
            stopped = Stopped(member(message, "req_id", str), member(message, "code", str), member(message, "reason", str))
            with self._changed:
                generation = self._generations.pop(stopped.req_id, None)
            if generation is not None:
                generation._stop(stopped)
        elif kind == "ended":
            ended = Ended(member(message, "finish", str), member(message, "tokens", int))
            with self._changed:
                generation = self._generations.pop(member(message, "req_id", str), None)
            if generation is not None:
                generation._end(ended)
        elif kind == "cancelled":
            found = member(message, "found", bool)
            cancel = self._take(self._cancels, member(message, "req_id", str))
            if cancel is not None:
                settle(cancel.answer, lambda: found)
        elif kind == "error":
            self._refused(message)

    def _began(self, message: Dict[str, Any]) -> None:
        req_id = member(message, "req_id", str)
        member(message, "context_seq", int)
        member(message, "context_digest", str)
        request = self._take(self._begins, req_id)
        if request is None:
            self._send({"type": "end", "req_id": req_id, "failed": "the program has stopped waiting"})
            return
        generation = Generation(self, message, request.on_stop)
        with self._changed:
            self._generations[req_id] = generation
        settle(request.answer, lambda: generation)

    def _refused(self, message: Dict[str, Any]) -> None:
        """Take an error: it answers the oldest request of its req_id."""
        code, detail, req_id = member(message, "code", str), member(message, "detail", str), str(message.get("req_id", ""))
        if code == "no_generation":
            with self._changed:
                generation = self._generations.pop(req_id, None)
            if generation is not None:
                generation._stop(Stopped(req_id, "LOST", detail))
            return
        for waiting in (self._begins, self._intents, self._cancels):
            request = self._take(waiting, req_id)
            if request is not None:
                settle(request.answer, failing(req_id, code, detail))
                return
        log.warning("sajou: the server answered %s: %s", code, detail)

    def _take(self, waiting: Dict[str, _Request], req_id: str) -> Optional[_Request]:
        with self._changed:
            return waiting.pop(req_id, None)


def _raise(error: BaseException) -> Any:
    raise error
