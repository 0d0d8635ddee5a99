"""A generation: the program drives its model, and the world can stop it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Protocol

from .errors import SajouError, Stopped
from .messages import Outcome

__all__ = ["Ended", "Generation", "Refused"]


@dataclass(frozen=True)
class Ended:
    """The end of a generation. finish is stop, token_budget (the text so far is the answer) or
    error; tokens are those of the answer."""

    finish: str
    tokens: int


class Refused(SajouError):
    """A generation may not begin; outcome has the reason."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        r = outcome.rejection
        super().__init__(f"generation {outcome.req_id!r} may not begin: " + (f"{r.code}: {r.reason}" if r else "the request has an outcome"))


class _Owner(Protocol):
    """The agent of a generation, as far as the generation uses it."""

    _timeout: float

    def act(self, kind: str, payload: Optional[Dict[str, Any]] = None, **more: Any) -> Outcome: ...

    def _tell(self, message: Dict[str, Any], generation: "Generation") -> None: ...

    def _forget(self, generation: "Generation") -> None: ...


class Generation:
    """A generation that runs. Agent.begin makes it.

    A stop comes at once, in the thread of the connection: on_stop is called there, to break
    the call of the model off, and the next write raises Stopped. As a context manager it ends
    a generation that its block leaves with an error as failed.
    """

    def __init__(self, agent: _Owner, begun: Dict[str, Any], on_stop: Optional[Callable[[Stopped], None]]) -> None:
        self._agent = agent
        self._on_stop = on_stop
        self._over = threading.Condition()
        self._stopped: Optional[Stopped] = None
        self._ended: Optional[Ended] = None
        #: The names of the request, and of the view on which the answer is based.
        self.req_id: str = begun["req_id"]
        self.context_seq: int = begun["context_seq"]
        self.context_digest: str = begun["context_digest"]
        #: The limits; None without one.
        self.deadline_ms: Optional[float] = begun.get("deadline_ms")
        self.token_budget: Optional[int] = begun.get("token_budget")
        self._text: List[str] = []
        self._tokens = 0

    @property
    def text(self) -> str:
        """The text that was written."""
        return "".join(self._text)

    @property
    def stopped(self) -> Optional[Stopped]:
        """Why the world stopped it, None if it did not."""
        with self._over:
            return self._stopped

    @property
    def ended(self) -> Optional[Ended]:
        """Its end, None before it."""
        with self._over:
            return self._ended

    def write(self, text: str, count: int = 1) -> bool:
        """Send text of the model, of count tokens. Return whether the generation goes on: at its
        budget it ends, and the text so far is the answer. Raise Stopped if the world stopped it."""
        with self._over:
            if self._stopped is not None:
                raise self._stopped
            if self._ended is not None:
                return False
        self._text.append(text)
        self._tokens += count
        self._agent._tell({"type": "tokens", "req_id": self.req_id, "text": text, "count": count}, self)
        return True

    def end(self, timeout: Optional[float] = None) -> Ended:
        """Say that the model is done, and wait until its answer is recorded."""
        return self._finish({"type": "end", "req_id": self.req_id}, timeout)

    def fail(self, reason: str, timeout: Optional[float] = None) -> Ended:
        """Say that the model gave no answer, and why."""
        return self._finish({"type": "end", "req_id": self.req_id, "failed": reason or "no reason"}, timeout)

    def submit(self, kind: str, payload: Optional[Dict[str, Any]] = None, **more: Any) -> Outcome:
        """End the generation with an intent that is made of its text, and wait for the outcome.
        The arguments are those of Agent.act. Raise Stopped if the world stopped it."""
        stopped = self.stopped
        if stopped is not None:
            raise stopped
        outcome = self._agent.act(kind, payload, req_id=self.req_id, context_seq=self.context_seq, **more)
        self._agent._forget(self)
        self._end(Ended("stop", self._tokens))
        return outcome

    def wait(self, timeout: float) -> bool:
        """Wait for a stop or an end, at most timeout seconds. Return whether one came."""
        with self._over:
            return self._over.wait_for(lambda: self._stopped is not None or self._ended is not None, timeout)

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, kind: object, error: Optional[BaseException], _: object) -> None:
        with self._over:
            over = self._stopped is not None or self._ended is not None
        if over:
            return
        try:
            self.fail(f"{type(error).__name__}: {error}"[:500] if error else "the program gave no answer")
        except (SajouError, TimeoutError):
            pass  # the error of the block counts

    def _finish(self, message: Dict[str, Any], timeout: Optional[float]) -> Ended:
        with self._over:
            if self._stopped is not None:
                raise self._stopped
            if self._ended is not None:
                return self._ended
        self._agent._tell(message, self)
        limit = self._agent._timeout if timeout is None else timeout
        if not self.wait(limit):
            raise TimeoutError(f"no answer to the end of generation {self.req_id!r} in {limit:g} s")
        with self._over:
            if self._stopped is not None:
                raise self._stopped
            assert self._ended is not None
            return self._ended

    # Called by the agent.

    def _stop(self, why: Stopped) -> None:
        with self._over:
            if self._stopped is not None or self._ended is not None:
                return
            self._stopped = why
            self._over.notify_all()
        if self._on_stop is not None:
            self._on_stop(why)

    def _end(self, how: Ended) -> None:
        with self._over:
            if self._stopped is None and self._ended is None:
                self._ended = how
                self._over.notify_all()
