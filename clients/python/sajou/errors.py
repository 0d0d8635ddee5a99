"""The errors of the library. Each states the fact, and where there is one, the remedy."""

from __future__ import annotations

from typing import Any, Mapping, Optional

__all__ = ["SajouError", "ProtocolError", "ConnectionEnded", "Problem", "RequestFailed", "Stopped"]


class SajouError(Exception):
    """The class of all errors of this library, except for TimeoutError and ValueError."""


class ProtocolError(SajouError):
    """The server sent something that the protocol does not allow."""


#: What a program can do after each end of a connection; see docs/protocol.md.
REMEDIES: Mapping[int, str] = {
    1000: "the program closed the connection; connect again",
    1001: "the server stops; connect again later",
    1003: "a frame was not text; this is a fault of the client",
    1006: "the network failed, or the server did not answer; connect again",
    1009: "the message was too large; send a smaller one",
    1011: "the server failed; connect again later",
    4000: "the server could not read the messages; this is a fault of the client",
    4001: "give a valid token",
    4002: "say hello in time",
    4003: "give a token with the right scope: act for an agent, tick for a simulation",
    4004: "begin the world and register the agent first",
    4005: "another connection of this agent took over; run one program for each agent",
    4006: "the agent has left the world; register it again",
    4007: "end the other simulation of the session, or wait until the server notices its end",
    4008: "the store takes no entries; connect again later",
}


class ConnectionEnded(SajouError):
    """The connection is over. code is the close code, 1006 if the network failed."""

    def __init__(self, code: int, reason: str = "") -> None:
        self.code = code
        self.reason = reason
        fact = f"the connection ended with {code}" + (f" ({reason})" if reason else "")
        remedy = REMEDIES.get(code)
        super().__init__(fact + (f": {remedy}" if remedy else ""))


class Problem(SajouError):
    """The server refused a request with a problem document (RFC 9457).

    status is the HTTP status, code the kind of problem, which programs compare, pointer
    leads to the faulty value in the body, retry_after is in seconds. document has all members.
    """

    def __init__(self, status: int, document: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.document = document
        self.code = str(document.get("code", ""))
        self.detail = str(document.get("detail", document.get("title", "")))
        self.pointer = document.get("pointer")
        self.retry_after = retry_after
        super().__init__(f"the server answered {status} {self.code}: {self.detail}")


class RequestFailed(SajouError):
    """A request has no outcome. code is that of an error message, such as unavailable, or
    lost if the connection ended before the answer."""

    def __init__(self, req_id: str, code: str, detail: str) -> None:
        self.req_id = req_id
        self.code = code
        self.detail = detail
        super().__init__(f"request {req_id!r}: {code}: {detail}")


class Stopped(SajouError):
    """The world stopped a generation: the program calls its model off.

    code is GENERATION_CANCELLED, TIMEOUT, or LOST if the connection ended. If stale is
    true, begin again with the same req_id.
    """

    def __init__(self, req_id: str, code: str, reason: str) -> None:
        self.req_id = req_id
        self.code = code
        self.reason = reason
        super().__init__(f"generation {req_id!r} was stopped: {code}: {reason}")

    @property
    def stale(self) -> bool:
        """Whether newer observations made the generation stale."""
        return self.reason.startswith("stale_due_to")
