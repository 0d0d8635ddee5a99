"""The director of a session: it guides the turns of a character through an episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .messages import member
from .server import Server

__all__ = ["Choice", "ChoicePoint", "Directive", "Director", "Guidance", "Landing", "Message", "Opening", "Response"]


@dataclass(frozen=True)
class Opening:
    """The beginning of an episode."""

    episode: str
    briefing: str
    opening_line: str


@dataclass(frozen=True)
class Directive:
    """What should happen now: a beat, and how urgent it is."""

    beat_id: str
    instruction: str
    urgency: str
    context: str


@dataclass(frozen=True)
class Guidance:
    """The guidance of a turn. section is the text for the character's prompt."""

    turn: int
    pacing: str
    physical_anchor: str
    genre: str
    energy_level: str
    context: Sequence[str]
    directive: Optional[Directive]
    section: str


@dataclass(frozen=True)
class Landing:
    """A beat that a response brought about."""

    beat_id: str
    method: str
    assurance: str
    heard_at_turn: int


@dataclass(frozen=True)
class ChoicePoint:
    """A choice for the user: prompt, and labels by the ids of the options."""

    id: str
    prompt: str
    options: Mapping[str, str]
    mode: str
    beat_id: Optional[str]


@dataclass(frozen=True)
class Response:
    """What a response of the character changed: the beats by what became of them, and the choice
    that it leads to."""

    turn: int
    attempt: int
    evaluated: bool
    landed: Sequence[Landing]
    missed: Sequence[str]
    completed: Sequence[str]
    failed: Sequence[str]
    revealed: Sequence[str]
    suggested: Sequence[str]
    visual: bool
    choice: Optional[ChoicePoint]


@dataclass(frozen=True)
class Message:
    """The user's message that a choice is."""

    content: str
    metadata: Mapping[str, Any]
    role: str = "user"


@dataclass(frozen=True)
class Choice:
    """A choice that was made. message is the user's next message, if the choice is one: the next
    turn is then guided without a text. again says that the same choice was made before."""

    choice_point: str
    choice: str
    flag: Optional[str]
    message: Optional[Message]
    again: bool


class Director:
    """The director of one session; the token needs the scope define.

    Each call may be repeated: it then has its first answer. So faults of the network are
    overcome by Server.retry. A refusal raises Problem; code in-use means that another choice
    was made, or that one is pending.
    """

    def __init__(self, server: Server, session: str) -> None:
        self._server = server
        self._session = session

    def start(self, episode: Mapping[str, Any], *, flags: Sequence[str] = (), energy: Optional[str] = None) -> Opening:
        """Begin an episode, in the form of docs/episodes.md."""
        body: Dict[str, Any] = {"episode": episode, "flags": list(flags)}
        if energy is not None:
            body["energy"] = energy
        a = self._call("start", body)
        return Opening(member(a, "episode", str), member(a, "briefing", str), member(a, "opening_line", str))

    def guide(self, turn: int, text: Optional[str] = None) -> Guidance:
        """Open a turn with the user's text; without one after a choice that is a message."""
        a = self._call("guide", {"turn": turn} if text is None else {"turn": turn, "text": text})
        d = a.get("directive")
        directive = None
        if d is not None:
            directive = Directive(member(d, "beat_id", str), member(d, "instruction", str), member(d, "urgency", str), member(d, "context", str))
        return Guidance(
            turn=member(a, "turn", int), pacing=member(a, "pacing", str), physical_anchor=member(a, "physical_anchor", str),
            genre=member(a, "genre", str), energy_level=member(a, "energy_level", str), context=member(a, "context", list),
            directive=directive, section=member(a, "section", str),
        )  # fmt: skip

    def respond(self, turn: int, text: str, *, attempt: int = 0, before: Sequence[Mapping[str, str]] = ()) -> Response:
        """Record the character's response. before are the lines of the dialogue before it, each
        with role and text. attempt counts the responses to one turn, from 0."""
        a = self._call("respond", {"turn": turn, "attempt": attempt, "text": text, "before": list(before)})
        choice = a.get("choice")
        return Response(
            turn=member(a, "turn", int), attempt=member(a, "attempt", int), evaluated=member(a, "evaluated", bool),
            landed=[
                Landing(member(n, "beat_id", str), member(n, "method", str), member(n, "assurance", str), member(n, "heard_at_turn", int))
                for n in member(a, "landed", list)
            ],
            missed=_texts(a, "missed"), completed=_texts(a, "completed"), failed=_texts(a, "failed"), revealed=_texts(a, "revealed"),
            suggested=_texts(a, "suggested"), visual=member(a, "visual", bool), choice=None if choice is None else _choice_point(choice),
        )  # fmt: skip

    def choose(self, choice_point: str, choice: str) -> Choice:
        """Make the user's choice. It is recorded as the user's message."""
        a = self._call("choose", {"choice_point": choice_point, "choice": choice})
        m = a.get("message")
        message = None if m is None else Message(member(m, "content", str), member(m, "metadata", dict), member(m, "role", str))
        return Choice(member(a, "choice_point", str), member(a, "choice", str), a.get("flag"), message, member(a, "again", bool))

    def _call(self, what: str, body: Mapping[str, Any]) -> Dict[str, Any]:
        answer: Dict[str, Any] = self._server.request("POST", self._server.path(self._session, "director", what), body, repeat=True)
        return answer


def _texts(a: Mapping[str, Any], name: str) -> List[str]:
    texts: List[str] = member(a, name, list)
    return texts


def _choice_point(c: Mapping[str, Any]) -> ChoicePoint:
    options = {member(o, "id", str): member(o, "label", str) for o in member(c, "choices", list)}
    return ChoicePoint(member(c, "id", str), member(c, "prompt", str), options, member(c, "mode", str), c.get("beat_id"))
