"""Recording signals into a session."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Union
from urllib.parse import urlencode

from .messages import member
from .server import Server

__all__ = ["Receipt", "Recorder", "signal"]


@dataclass(frozen=True)
class Receipt:
    """The proof that signals are durable: the number of the first entry, and the head of the
    session, as SEQ:HASH. repeat says that an earlier request with the same key recorded them."""

    session: str
    first: int
    head: str
    signals: int
    flagged: int
    out_of_order: int
    repeat: bool


def signal(
    type: str, payload: Mapping[str, Any], *, source: str, correlation_id: Optional[str] = None, metadata: Optional[Mapping[str, Any]] = None,
    id: Optional[str] = None, timestamp: Optional[float] = None,
) -> Dict[str, Any]:  # fmt: skip
    """Return a signal. Without id it gets a new one, without timestamp, in milliseconds, the
    present time."""
    envelope: Dict[str, Any] = {
        "id": id or str(uuid.uuid4()), "type": type, "timestamp": int(time.time() * 1000) if timestamp is None else timestamp,
        "source": source, "payload": dict(payload),
    }  # fmt: skip
    if correlation_id is not None:
        envelope["correlationId"] = correlation_id
    if metadata is not None:
        envelope["metadata"] = dict(metadata)
    return envelope


class Recorder:
    """Records into one session; the token needs the scope record."""

    def __init__(self, server: Server, session: str) -> None:
        self._server = server
        self._session = session

    def record(
        self, signals: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]], *, key: Optional[str] = None, expect: Optional[str] = None,
        lenient: bool = False,
    ) -> Receipt:  # fmt: skip
        """Record one signal, or many: all or none. The signals are durable when it returns.

        key is the idempotency key: a second call with it records nothing and returns the first
        receipt. Without one the call makes its own, so that what it repeats after a fault of
        the network is recorded once. expect is the head that the session must have; otherwise
        Problem has the code conflict. With lenient, signals that the schema refuses are
        recorded with the reason.
        """
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        if expect is not None:
            headers["If-Match"] = f'"{expect}"'
        path = self._server.path(self._session, "signals") + ("?" + urlencode({"lenient": "true"}) if lenient else "")
        body = signals if isinstance(signals, Mapping) else list(signals)
        a = self._server.request("POST", path, body, headers=headers, repeat=True)
        head = member(a, "head", dict)
        return Receipt(
            session=member(a, "session", str), first=member(a, "first", int), head=f"{member(head, 'seq', int)}:{member(head, 'hash', str)}",
            signals=member(a, "signals", int), flagged=member(a, "flagged", int), out_of_order=member(a, "out_of_order", int),
            repeat=member(a, "repeat", bool),
        )  # fmt: skip
