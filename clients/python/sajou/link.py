"""A connection that is kept: it says hello, reads in a thread of its own, answers pings, and
connects again when the network or the server failed."""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Callable, Dict, Iterator, Optional, TypeVar

from .errors import ConnectionEnded, Problem, ProtocolError, RequestFailed, SajouError
from .exact import parse
from .server import Backoff, Server
from .websocket import WebSocket

__all__ = ["Link", "await_result"]

log = logging.getLogger("sajou")

T = TypeVar("T")

#: The close codes after which a client connects again by itself.
_TEMPORARY = frozenset({1001, 1005, 1006, 1011, 4008})

#: Before the welcome, the client waits at most as long for a message, in seconds.
_WELCOME_TIMEOUT = 15.0


class Link:
    """What agents and simulations have in common.

    A subclass says hello (_hello), takes the welcome and all later messages (_welcomed,
    _received), and gives up what does not outlive a connection (_lost). All of these are
    called by the thread of the link, without a lock. _changed guards the state of the subclass.
    """

    def __init__(self, server: Server, path: str, subprotocol: str, backoff: Backoff) -> None:
        self._server = server
        self._path = path
        self._subprotocol = subprotocol
        self._backoff = backoff
        self._changed = threading.Condition()
        self._socket: Optional[WebSocket] = None  # that of the welcome; guarded by _changed
        self._welcome = False  # there was one; guarded by _changed
        self._failure: Optional[BaseException] = None  # why the link ended; guarded by _changed
        self._closing = threading.Event()
        self._delays: Optional[Iterator[float]] = None  # the waits since the last welcome; of the thread alone
        self._thread = threading.Thread(target=self._run, name="sajou " + path, daemon=True)

    # For the program.

    @property
    def failure(self) -> Optional[BaseException]:
        """Why the connection has ended for good; None while it lives or is made again."""
        with self._changed:
            return self._failure

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        with self._changed:
            return self._socket is not None

    def wait_connected(self, timeout: float) -> bool:
        """Wait until there is a connection, at most timeout seconds. Return whether there is one.
        Raise the error of a link that has ended for good."""
        with self._changed:
            self._changed.wait_for(lambda: self._socket is not None or self._failure is not None, timeout)
            self._check()
            return self._socket is not None

    def reconnect(self) -> None:
        """Drop the connection and make a new one, as after a failed network."""
        with self._changed:
            socket, self._socket = self._socket, None
        if socket is not None:
            socket.cut()

    def close(self) -> None:
        """End the connection. What waits for an answer fails."""
        self._closing.set()
        with self._changed:
            socket = self._socket
        if socket is not None:
            socket.close()
        if self._thread is threading.current_thread():
            return
        self._thread.join(2.0)
        if self._thread.is_alive() and socket is not None:
            socket.cut()  # the server does not answer
            self._thread.join(2.0)

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # For subclasses.

    def _hello(self) -> Dict[str, Any]:
        raise NotImplementedError

    def _welcomed(self, welcome: Dict[str, Any]) -> None:
        raise NotImplementedError

    def _received(self, message: Dict[str, Any]) -> None:
        raise NotImplementedError

    def _lost(self, why: BaseException, last: bool) -> None:
        raise NotImplementedError

    def _connect(self) -> None:
        """Begin. The first connection is tried once, and its error raised."""
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._welcome or self._failure is not None)
            if not self._welcome:
                self._check()

    def _send(self, message: Dict[str, Any]) -> bool:
        """Send a message, unless there is no connection. Return whether it was sent."""
        with self._changed:
            socket = self._socket
        return send_on(socket, message)

    def _check(self) -> None:
        """Raise the error of a link that has ended. The caller holds _changed."""
        if self._failure is not None:
            raise self._failure

    # The thread.

    def _run(self) -> None:
        while True:
            why: BaseException
            try:
                self._converse()
                why = ConnectionEnded(1000, "this side closed it")
            except (SajouError, OSError) as e:
                why = e
            except Exception as e:
                log.exception("sajou: the connection ends, because a callback of the program failed")
                why = e
            delay = None
            if self._closing.is_set():
                why = ConnectionEnded(1000, "this side closed it")
            elif self._delays is not None and self._temporary(why):
                delay = next(self._delays, None)
            with self._changed:
                if delay is None:
                    self._failure = why
            self._lost(why, delay is None)
            with self._changed:
                self._changed.notify_all()
            if delay is None:
                return
            log.info("sajou: %s; connecting again in %g s", why, delay)
            self._closing.wait(delay)

    def _converse(self) -> None:
        """Connect, and read to the end of the connection."""
        if self._closing.is_set():
            return
        socket = WebSocket.connect(self._server, self._path, self._subprotocol)
        try:
            socket.send(json.dumps(self._hello()))
            welcome = _message(socket.receive(_WELCOME_TIMEOUT))
            if welcome["type"] != "welcome" or welcome.get("protocol") != 1:
                raise ProtocolError(f"the server sent {welcome['type']!r} in place of a welcome of protocol 1")
            idle = 2 * _number(welcome, "heartbeat_ms") / 1000
            self._welcomed(welcome)
            self._delays = self._backoff.delays()
            with self._changed:
                self._socket, self._welcome = socket, True
                self._changed.notify_all()
            if self._closing.is_set():
                socket.close()
            self._begun()
            while True:
                message = _message(socket.receive(idle))
                if message["type"] != "heartbeat":
                    self._received(message)
        finally:
            with self._changed:
                self._socket = None
            socket.cut()
            socket.free()

    def _begun(self) -> None:
        """Called after each welcome, when messages can be sent."""

    @staticmethod
    def _temporary(why: BaseException) -> bool:
        if isinstance(why, ConnectionEnded):
            return why.code in _TEMPORARY
        if isinstance(why, Problem):
            return why.status in (429, 502, 503, 504)
        return isinstance(why, OSError)


def send_on(socket: Optional[WebSocket], message: Dict[str, Any]) -> bool:
    """Send a message on a connection that may have ended. Return whether it was sent."""
    if socket is None:
        return False
    try:
        socket.send(json.dumps(message, ensure_ascii=False, allow_nan=False))
    except (OSError, ConnectionEnded):
        return False  # the thread of the link sees the end too
    return True


def _message(text: str) -> Dict[str, Any]:
    message = parse(text)
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("a message is an object with a type")
    return message


def _number(message: Dict[str, Any], name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise ProtocolError(f"/{name}: want a number above 0")
    return float(value)


def await_result(future: "Future[T]", timeout: float, what: str) -> T:
    """Return the result of a future, or raise TimeoutError in words that help."""
    try:
        return future.result(timeout)
    except FutureTimeout:
        if future.done():
            raise  # it is the future's own error
        raise TimeoutError(f"no answer to {what} in {timeout:g} s; it may still come") from None


def settle(future: "Future[Any]", how: Callable[[], Any]) -> None:
    """Give a future the result of how, or the error that it raises. Later ones are dropped."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = how()
    except Exception as e:
        future.set_exception(e)
    else:
        future.set_result(result)


def failing(req_id: str, code: str, detail: str) -> Callable[[], Any]:
    """Return a function that raises RequestFailed."""

    def fail() -> Any:
        raise RequestFailed(req_id, code, detail)

    return fail
