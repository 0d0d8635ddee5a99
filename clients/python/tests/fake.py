"""A server of one connection that sends what a test wants, right or wrong."""

import base64
import hashlib
import json
import socket
import struct
import threading
from typing import Any, Callable, List, Optional, Tuple

from sajou import Server

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(opcode: int, payload: bytes, final: bool = True) -> bytes:
    """Return a frame of a server."""
    first = (0x80 if final else 0) | opcode
    if len(payload) < 126:
        return bytes([first, len(payload)]) + payload
    if len(payload) < 1 << 16:
        return struct.pack("!BBH", first, 126, len(payload)) + payload
    return struct.pack("!BBQ", first, 127, len(payload)) + payload


def text(message: Any) -> bytes:
    """Return the frame of a message."""
    return frame(1, json.dumps(message).encode())


WELCOME = {"type": "welcome", "protocol": 1, "session": "s", "agent": "a", "resumed": False, "window": 64, "heartbeat_ms": 15000, "max_message": 1 << 20}


class Peer:
    """The server's end of a connection."""

    def __init__(self, conn: socket.socket) -> None:
        self.conn = conn
        self.reader = conn.makefile("rb")

    def request(self) -> str:
        """Read the head of a request, and return it."""
        lines: List[bytes] = []
        while not lines or lines[-1] not in (b"\r\n", b""):
            lines.append(self.reader.readline())
        return b"".join(lines).decode()

    def accept(self, head: str, *extra: str, subprotocol: str = "sajou.agent.v1") -> None:
        """Answer the request with a WebSocket."""
        key = next(line.split(": ")[1] for line in head.split("\r\n") if line.startswith("Sec-WebSocket-Key"))
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accept}"]
        self.conn.sendall("\r\n".join([*lines, f"Sec-WebSocket-Protocol: {subprotocol}", *extra, "", ""]).encode())

    def frame(self) -> Optional[Tuple[int, bytes]]:
        """Read a frame of the client, which has to be masked; None at the end."""
        head = self.reader.read(2)
        if len(head) < 2:
            return None
        assert head[1] & 0x80, "a client masks its frames"
        length = head[1] & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self.reader.read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self.reader.read(8))
        mask = self.reader.read(4)
        return head[0] & 0x0F, bytes(b ^ mask[i % 4] for i, b in enumerate(self.reader.read(length)))

    def message(self) -> Any:
        """Read messages of the client up to one that is not an ack."""
        while True:
            got = self.frame()
            assert got is not None and got[0] == 1, got
            message = json.loads(got[1])
            if message["type"] != "ack":
                return message

    def send(self, *frames: bytes) -> None:
        self.conn.sendall(b"".join(frames))


class Fake:
    """A server whose connections are served by serve, one after the other."""

    def __init__(self, serve: Callable[[Peer, int], None]) -> None:
        self.serve = serve
        self.error: Optional[BaseException] = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.server = Server(f"http://127.0.0.1:{self.listener.getsockname()[1]}", timeout=5)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        for n in range(100):
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            conn.settimeout(10)
            with conn:
                try:
                    self.serve(Peer(conn), n)
                except (OSError, AssertionError) as e:
                    self.error = e

    def __enter__(self) -> "Fake":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
