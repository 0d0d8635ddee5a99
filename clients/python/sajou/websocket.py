"""The client side of a WebSocket (RFC 6455), as far as the protocol needs it.

Text frames without extensions. Pings are answered by receive. One thread may receive while
others send. Every wait has an end.
"""

from __future__ import annotations

import base64
import hashlib
import os
import selectors
import socket
import ssl
import struct
import threading
import time
from typing import Dict, Tuple

from .errors import ConnectionEnded, Problem, ProtocolError, SajouError
from .exact import parse
from .server import Server

__all__ = ["WebSocket"]

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_MAX_HEAD = 16 << 10


class WebSocket:
    """One WebSocket. Make it with connect."""

    def __init__(self, sock: socket.socket, max_message: int, timeout: float) -> None:
        self._sock = sock
        self._max_message = max_message
        self._timeout = timeout
        self._buffer = bytearray()
        self._touch = threading.Lock()  # one call of the socket at a time: TLS allows no more
        self._sending = threading.Lock()  # frames are sent whole
        self._closing = False  # a close frame was sent; guarded by _sending
        sock.setblocking(False)

    @classmethod
    def connect(cls, server: Server, path: str, subprotocol: str, *, max_message: int = 16 << 20) -> WebSocket:
        """Connect and shake hands. max_message bounds the messages that are received, in bytes."""
        deadline = time.monotonic() + server.timeout
        sock = socket.create_connection((server.host, server.port), timeout=server.timeout)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if server.secure:
                sock = server.context().wrap_socket(sock, server_hostname=server.host)
            self = cls(sock, max_message, server.timeout)
            self._shake_hands(server, path, subprotocol, deadline)
            return self
        except BaseException:
            sock.close()
            raise

    def _shake_hands(self, server: Server, path: str, subprotocol: str, deadline: float) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {server.netloc}", "Connection: Upgrade", "Upgrade: websocket"]
        lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", f"Sec-WebSocket-Protocol: {subprotocol}"]
        lines += [f"{name}: {value}" for name, value in server.headers().items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a token or an address has no line breaks")
        self._send_all("\r\n".join(lines + ["", ""]).encode(), deadline)
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > _MAX_HEAD:
                raise ProtocolError("the head of the answer is too long")
            self._fill(deadline)
        head, _, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        self._buffer = bytearray(rest)
        status, headers = _head(head)
        if status != 101:
            raise self._refusal(status, headers, deadline)
        accept = base64.b64encode(hashlib.sha1((key + _GUID).encode()).digest()).decode()
        if headers.get("upgrade", "").lower() != "websocket" or headers.get("sec-websocket-accept") != accept:
            raise ProtocolError("the answer does not accept the WebSocket: the address is not that of a Sajou server")
        if headers.get("sec-websocket-protocol") != subprotocol or "sec-websocket-extensions" in headers:
            raise ProtocolError(f"the server does not speak {subprotocol}")

    def _refusal(self, status: int, headers: Dict[str, str], deadline: float) -> SajouError:
        """The error of an answer that is no WebSocket."""
        length = headers.get("content-length", "")
        want = int(length) if length.isascii() and length.isdigit() and len(length) < 6 else 0
        try:
            while len(self._buffer) < want:
                self._fill(deadline)
            document = parse(self._buffer[:want].decode())
        except (SajouError, OSError, UnicodeDecodeError):
            document = {}
        return Problem(status, document if isinstance(document, dict) else {})

    def send(self, text: str) -> None:
        """Send one message."""
        self._frame(_TEXT, text.encode())

    def receive(self, timeout: float) -> str:
        """Return the next message. Raise ConnectionEnded at the end, TimeoutError if nothing comes
        in timeout seconds, not even a ping."""
        kind, message = 0, bytearray()
        while True:
            last, opcode, payload = self._next_frame(time.monotonic() + timeout, self._max_message - len(message))
            if opcode == _PING:
                self._frame(_PONG, payload)
            elif opcode == _CLOSE:
                raise self._closed_by_server(payload)
            elif opcode != _PONG:
                if (opcode == _CONTINUATION) != bool(kind):
                    raise self._violation(1002, "a message inside of another")
                kind = kind or opcode
                message += payload
                if last:
                    break
        if kind != _TEXT:
            raise self._violation(1003, "a message that is not text")
        try:
            return message.decode()
        except UnicodeDecodeError:
            raise self._violation(1007, "a text that is not UTF-8") from None

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Tell the server the end. The thread that receives gets the server's answer; cut ends
        the connection without one."""
        try:
            self._frame(_CLOSE, struct.pack("!H", code) + reason.encode()[:123])
        except (OSError, ConnectionEnded):
            pass  # it has ended

    def cut(self) -> None:
        """End the connection at once. Threads that wait on it get ConnectionEnded."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def free(self) -> None:
        """Close the socket; no thread may use it any more."""
        self._sock.close()

    def _closed_by_server(self, payload: bytes) -> ConnectionEnded:
        code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else 1005
        self.close(code if code != 1005 else 1000)
        return ConnectionEnded(code, payload[2:].decode("utf-8", "replace"))

    def _violation(self, code: int, what: str) -> ProtocolError:
        self.close(code)
        return ProtocolError("the server sent " + what)

    def _next_frame(self, deadline: float, most: int) -> Tuple[bool, int, bytes]:
        first, second = self._take(2, deadline)
        opcode, length = first & 0x0F, second & 0x7F
        if first & 0x70 or second & 0x80 or opcode not in (_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG):
            raise self._violation(1002, "a frame that the protocol does not allow")
        if opcode >= _CLOSE and (length > 125 or not first & 0x80):
            raise self._violation(1002, "a long control frame")
        if length == 126:
            (length,) = struct.unpack("!H", self._take(2, deadline))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._take(8, deadline))
        if opcode < _CLOSE and length > most:
            raise self._violation(1009, f"a message of more than {self._max_message} bytes")
        return bool(first & 0x80), opcode, self._take(length, deadline)

    def _frame(self, opcode: int, payload: bytes) -> None:
        head = bytearray([0x80 | opcode])
        if len(payload) < 126:
            head.append(0x80 | len(payload))
        elif len(payload) < 1 << 16:
            head += struct.pack("!BH", 0x80 | 126, len(payload))
        else:
            head += struct.pack("!BQ", 0x80 | 127, len(payload))
        mask = os.urandom(4)
        frame = bytes(head) + mask + _masked(payload, mask)
        with self._sending:
            if self._closing:
                raise ConnectionEnded(1000, "this side closed it")
            self._closing = opcode == _CLOSE
            try:
                self._send_all(frame, time.monotonic() + self._timeout)
            except OSError:
                self.cut()  # a part of a frame may be sent: nothing can follow it
                raise

    def _take(self, n: int, deadline: float) -> bytes:
        while len(self._buffer) < n:
            self._fill(deadline)
        taken = bytes(self._buffer[:n])
        del self._buffer[:n]
        return taken

    def _fill(self, deadline: float) -> None:
        while True:
            wanted = selectors.EVENT_READ
            with self._touch:
                try:
                    data = self._sock.recv(1 << 16)
                    break
                except ssl.SSLWantWriteError:
                    wanted = selectors.EVENT_WRITE
                except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
                    pass
                except (ConnectionError, ssl.SSLError) as e:
                    raise ConnectionEnded(1006, str(e)) from e
            self._wait(wanted, deadline)
        if not data:
            raise ConnectionEnded(1006, "no close frame came")
        self._buffer += data

    def _send_all(self, data: bytes, deadline: float) -> None:
        rest = memoryview(data)
        while rest:
            wanted = selectors.EVENT_WRITE
            with self._touch:
                try:
                    rest = rest[self._sock.send(rest) :]
                    continue
                except ssl.SSLWantReadError:
                    wanted = selectors.EVENT_READ
                except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
                    pass
            self._wait(wanted, deadline)

    def _wait(self, events: int, deadline: float) -> None:
        """Wait until the socket can go on."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, events)
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise TimeoutError("the server did not answer in time")


def _masked(payload: bytes, mask: bytes) -> bytes:
    n = len(payload)
    key = (mask * (n // 4 + 1))[:n]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(n, "big")


def _head(head: bytes) -> Tuple[int, Dict[str, str]]:
    """Return the status and the headers of an answer, their names in lower case."""
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not (parts[1].isascii() and parts[1].isdigit()):
        raise ProtocolError("the answer is no HTTP")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(parts[1]), headers
