"""The messages of the server, as the program gets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, TypedDict

from .errors import ProtocolError

__all__ = ["Effect", "Observation", "Outcome", "Rejection", "Ticked", "View"]


class View(TypedDict):
    """What an agent sees: entities by id, and relationships by the id from which they lead."""

    visible_entities: Dict[str, Any]
    visible_relationships: Dict[str, Any]


@dataclass(frozen=True)
class Observation:
    """A change of what the agent sees. view is the view after it; do not change it, since later
    views share its parts. missed counts the observations that a full view stands for."""

    view_seq: int
    view: View
    patches: Sequence[Mapping[str, Any]]
    full: bool
    missed: int
    at_ms: float


@dataclass(frozen=True)
class Effect:
    """An effect of the world. seq and at_ms, the number and the time of its entry in the log,
    are None in outcomes: only a simulation sees them."""

    uuid: str
    kind: str
    payload: Dict[str, Any]
    global_seq: int
    sim_time: float
    source_id: str
    schema_version: str
    req_id: Optional[str] = None
    seq: Optional[int] = None
    at_ms: Optional[float] = None


@dataclass(frozen=True)
class Rejection:
    """Why a request was refused. code is for programs, reason for people, recovery says what
    may be done: retry, retry_with_delay, regenerate, modify_intent and others."""

    code: str
    recovery: str
    reason: str = ""
    expected_seq: Optional[int] = None
    actual_seq: Optional[int] = None
    quota: Optional[str] = None
    limit: Optional[int] = None
    retry_after_ms: Optional[float] = None
    problems: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a request. status is accepted, duplicate or rejected. A duplicate had its
    final outcome before and has the effect or the rejection of then."""

    req_id: str
    status: str
    global_seq: Optional[int] = None
    uuid: Optional[str] = None
    number: Optional[int] = None
    effect: Optional[Effect] = None
    rejection: Optional[Rejection] = None

    @property
    def accepted(self) -> bool:
        """Whether there is an effect, of this request or of the first one with its req_id."""
        return self.rejection is None


@dataclass(frozen=True)
class Ticked:
    """The answer to a tick: how many submissions it decided, how many still wait, the newest
    entry, and all effects since the tick before."""

    sim_time: float
    decided: int
    waiting: int
    seq: int
    effects: List[Effect]


def effect_of(value: Mapping[str, Any], seq: Optional[int] = None, at_ms: Optional[float] = None) -> Effect:
    """Read an effect."""
    return Effect(
        uuid=member(value, "uuid", str), kind=member(value, "kind", str), payload=member(value, "payload", dict),
        global_seq=member(value, "global_seq", int), sim_time=number(value, "sim_time"), source_id=member(value, "source_id", str),
        schema_version=member(value, "schema_version", str), req_id=value.get("req_id"), seq=seq, at_ms=at_ms,
    )  # fmt: skip


def outcome_of(message: Mapping[str, Any]) -> Outcome:
    """Read the message outcome."""
    value = member(message, "outcome", dict)
    rejection = None
    if "rejection" in value:
        refused = member(value, "rejection", dict)
        rejection = Rejection(
            code=member(refused, "code", str), recovery=member(refused, "recovery", str), reason=str(refused.get("reason", "")),
            expected_seq=refused.get("expected_seq"), actual_seq=refused.get("actual_seq"), quota=refused.get("quota"),
            limit=refused.get("limit"), retry_after_ms=refused.get("retry_after_ms"), problems=refused.get("problems", ()),
        )  # fmt: skip
    return Outcome(
        req_id=member(message, "req_id", str), status=member(value, "status", str), global_seq=value.get("global_seq"),
        uuid=value.get("uuid"), number=value.get("number"), rejection=rejection,
        effect=effect_of(member(value, "effect", dict)) if "effect" in value else None,
    )  # fmt: skip


def member(message: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return a member of a message that has to be there. true and false are no integers."""
    value = message.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ProtocolError(f"{_place(message)}/{name}: want {kind.__name__}")
    return value


def number(message: Mapping[str, Any], name: str) -> float:
    """Return a member that is any number."""
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ProtocolError(f"{_place(message)}/{name}: want a number")
    return float(value)


def _place(message: Mapping[str, Any]) -> str:
    return f"message {message['type']!r}: " if isinstance(message.get("type"), str) else ""
