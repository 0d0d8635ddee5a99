"""The address of a server, and requests to it over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple
from urllib.parse import quote, urlsplit

from .errors import Problem, ProtocolError
from .exact import parse

__all__ = ["Backoff", "Server"]

#: The library reads at most as many bytes of an answer.
MAX_ANSWER = 64 << 20


@dataclass(frozen=True)
class Backoff:
    """The waits before a client connects again: first seconds, doubled after each failure, most
    at the longest, and as often as tries; None is without end."""

    first: float = 0.5
    most: float = 30.0
    tries: Optional[int] = None

    def delays(self) -> Iterator[float]:
        """Return the waits since the last connection."""
        delay, left = self.first, self.tries
        while left is None or left > 0:
            yield delay
            delay = min(2 * delay, self.most)
            left = None if left is None else left - 1


@dataclass(frozen=True)
class Server:
    """A server: its address, such as http://127.0.0.1:5175, and the caller's token.

    timeout, in seconds, bounds each connection and each answer. tls replaces the default
    context of https. A token is only sent over https or to this machine, unless insecure is
    true. retry is how requests that may be repeated are repeated after a fault, and sleep
    is how they wait.
    """

    url: str = "http://127.0.0.1:5175"
    token: Optional[str] = field(default=None, repr=False)
    timeout: float = 30.0
    tls: Optional[ssl.SSLContext] = field(default=None, repr=False)
    insecure: bool = False
    retry: Backoff = Backoff(first=0.2, most=5.0, tries=4)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{self.url!r} is not the address of a server; write http://HOST:PORT")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("the address of a server has no user, query or fragment; give the token as token=")
        if self.token and not self.secure and not self.insecure and parts.hostname not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError(f"the token would travel to {parts.hostname} in plain text; use https, or insecure=True")

    @property
    def secure(self) -> bool:
        """Whether connections use TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def host(self) -> str:
        """The name or the IP address, without brackets."""
        return urlsplit(self.url).hostname or ""

    @property
    def port(self) -> int:
        """The port."""
        return urlsplit(self.url).port or (443 if self.secure else 80)

    @property
    def netloc(self) -> str:
        """The host and the port, as the header Host has them."""
        return urlsplit(self.url).netloc

    def path(self, session: str, *parts: str) -> str:
        """Return the path of something of a session."""
        base = urlsplit(self.url).path.rstrip("/")
        return base + "/".join(["/api/v1/sessions", quote(session, safe="")] + [quote(p, safe="") for p in parts])

    def context(self) -> ssl.SSLContext:
        """Return the context of TLS."""
        return self.tls or ssl.create_default_context()

    def headers(self) -> Dict[str, str]:
        """Return the headers of every request."""
        return {"Authorization": "Bearer " + self.token} if self.token else {}

    def request(
        self, method: str, path: str, body: Any = None, *, headers: Optional[Mapping[str, str]] = None, repeat: bool = False
    ) -> Any:
        """Send one request and return the JSON of its answer. A refusal raises Problem, a network
        that fails OSError. With repeat, the request is sent again after a fault and after
        answers that ask for it (429, 503); redirects are never followed."""
        delays = self.retry.delays() if repeat else iter(())
        while True:
            try:
                status, answer, retry_after = self._exchange(method, path, body, headers or {})
            except (OSError, http.client.HTTPException) as e:
                delay = next(delays, None)
                if delay is None:
                    if isinstance(e, OSError):
                        raise
                    raise ConnectionError(f"the server broke its answer off: {e!r}") from e
            else:
                if 200 <= status < 300:
                    return answer
                delay = next(delays, None) if status in (429, 503) else None
                if delay is None:
                    raise Problem(status, answer if isinstance(answer, dict) else {}, retry_after)
                delay = max(delay, min(retry_after or 0, self.retry.most))
            self.sleep(delay)

    def _exchange(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Tuple[int, Any, Optional[float]]:
        connection: http.client.HTTPConnection
        if self.secure:
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout, context=self.context())
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        try:
            all_headers = {"Accept": "application/json", **self.headers(), **headers}
            data = None
            if body is not None:
                data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
                all_headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, data, all_headers)
            answer = connection.getresponse()
            return answer.status, _decoded(answer, _content(answer)), _seconds(answer.getheader("Retry-After"))
        finally:
            connection.close()


def _content(answer: http.client.HTTPResponse) -> bytes:
    content = bytearray()
    while True:
        piece = answer.read(1 << 16)
        if not piece:
            return bytes(content)
        content += piece
        if len(content) > MAX_ANSWER:
            raise ProtocolError(f"the answer has more than {MAX_ANSWER} bytes")


def _decoded(answer: http.client.HTTPResponse, content: bytes) -> Any:
    """The JSON of an answer. What is no JSON is an error of a 200 alone: a proxy may refuse in words."""
    try:
        return parse(content.decode())
    except (ProtocolError, UnicodeDecodeError):
        if 200 <= answer.status < 300:
            raise ProtocolError("the answer is no JSON: the address is not that of a Sajou server") from None
        return {"detail": answer.reason}


def _seconds(header: Optional[str]) -> Optional[float]:
    return float(header) if header and header.isascii() and header.isdigit() and len(header) < 9 else None
