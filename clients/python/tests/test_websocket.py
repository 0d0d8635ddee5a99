import struct
import time
import unittest
from typing import Callable

from sajou import Agent, Backoff, ConnectionEnded, Problem, ProtocolError, Server, Stopped, digest
from sajou.websocket import WebSocket

from .fake import WELCOME, Fake, Peer, frame, text

#: The empty view of agent a: its digest, and the patch of an observation that has it.
DIGEST = digest("a", {"visible_entities": {}, "visible_relationships": {}})
FULL = [{"op": "replace", "path": "/visible_entities", "value": {}}, {"op": "replace", "path": "/visible_relationships", "value": {}}]


def observation(seq: int, digest: str = "", **more: object) -> bytes:
    return text({"type": "observation", "view_seq": seq, "patches": [], "context_digest": digest, "schema_version": "1.0.0", "at_ms": 0, **more})


class WebSocketTest(unittest.TestCase):
    def receive(self, *frames: bytes, most: int = 1 << 10) -> str:
        """Return the message that the frames are, and keep what the client answered."""

        def serve(peer: Peer, _: int) -> None:
            peer.accept(peer.request())
            peer.send(*frames)
            while True:
                got = peer.frame()
                if got is None:
                    return
                self.answers.append(got)

        self.answers = []
        with Fake(serve) as fake:
            conn = WebSocket.connect(fake.server, "/", "sajou.agent.v1", max_message=most)
            try:
                return conn.receive(5)
            finally:
                conn.cut()
                conn.free()

    def test_a_message_in_pieces_with_a_ping_between(self) -> None:
        self.assertEqual(self.receive(frame(1, "é".encode()[:1], False), frame(9, b"!"), frame(0, "é".encode()[1:])), "é")
        self.assertEqual(self.answers, [(10, b"!")])
        self.assertEqual(self.receive(frame(1, b"x" * 1000)), "x" * 1000)

    def test_hostile_frames(self) -> None:
        for name, frames, code in [
            ("too large", (frame(1, b"x" * 2000),), 1009),
            ("too large in pieces", (frame(1, b"x" * 600, False), frame(0, b"x" * 600)), 1009),
            ("a length of 2^63", (b"\x81\x7f" + b"\xff" * 8,), 1009),
            ("masked", (b"\x81\x81\x00\x00\x00\x00x",), 1002),
            ("reserved bits", (b"\xc1\x00",), 1002),
            ("an unknown opcode", (b"\x83\x00",), 1002),
            ("a long ping", (frame(9, b"x" * 126),), 1002),
            ("a ping in pieces", (frame(9, b"", False),), 1002),
            ("a continuation of nothing", (frame(0, b"x"),), 1002),
            ("a message inside of another", (frame(1, b"x", False), frame(1, b"y")), 1002),
            ("binary", (frame(2, b"x"),), 1003),
            ("not UTF-8", (frame(1, b"\xff"),), 1007),
        ]:
            with self.subTest(name):
                with self.assertRaises(ProtocolError):
                    self.receive(*frames)
                self.assertEqual(self.answers, [(8, struct.pack("!H", code))])

    def test_ends(self) -> None:
        with self.assertRaises(ConnectionEnded) as ended:
            self.receive(frame(8, struct.pack("!H", 4005) + b"another connection"))
        self.assertEqual((ended.exception.code, ended.exception.reason), (4005, "another connection"))
        self.assertEqual(self.answers, [(8, struct.pack("!H", 4005))])
        with self.assertRaises(ConnectionEnded) as ended:
            self.receive(frame(8, b""))
        self.assertEqual(ended.exception.code, 1005)

    def test_handshakes_that_are_refused(self) -> None:
        def answering(answer: bytes) -> Callable[[Peer, int], None]:
            def serve(peer: Peer, _: int) -> None:
                peer.request()
                peer.send(answer)

            return serve

        body = b'{"code":"forbidden","detail":"no"}'
        refused = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        for answer, error in [
            (refused, Problem),
            (b"HTTP/1.1 302 Found\r\nLocation: http://elsewhere\r\n\r\n", Problem),
            (b"HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n", ProtocolError),
            (b"SSH-2.0-OpenSSH\r\n\r\n", ProtocolError),
            (b"HTTP/1.1 200 " + b"x" * 70000, ProtocolError),
            (b"", ConnectionEnded),
        ]:
            with self.subTest(answer[:30]), Fake(answering(answer)) as fake:
                with self.assertRaises(error) as raised:
                    WebSocket.connect(fake.server, "/", "sajou.agent.v1")
                if answer is refused:
                    self.assertEqual((raised.exception.status, raised.exception.code), (403, "forbidden"))
        for extra in (("Sec-WebSocket-Extensions: permessage-deflate",), ()):
            with Fake(lambda peer, _: peer.accept(peer.request(), *extra, subprotocol="sajou.agent.v1" if extra else "other")) as fake:
                with self.assertRaises(ProtocolError):
                    WebSocket.connect(fake.server, "/", "sajou.agent.v1")

    def test_tokens_do_not_travel_in_plain_text(self) -> None:
        for url in ("http://sajou.example", "http://192.0.2.1:5175"):
            with self.assertRaises(ValueError):
                Server(url, token="secret")
            Server(url, token="secret", insecure=True)
        for url in ("ftp://x", "http://", "http://user:word@127.0.0.1", "127.0.0.1:5175"):
            with self.assertRaises(ValueError):
                Server(url)
        self.assertNotIn("secret", repr(Server(token="secret")))
        with self.assertRaises(ValueError):
            WebSocket.connect(Server(Fake(lambda *_: None).server.url, token="a\r\nb"), "/", "p")


class AgentTest(unittest.TestCase):
    """An agent and a server that does not behave."""

    def test_a_wrong_digest_asks_for_a_full_view(self) -> None:
        def serve(peer: Peer, _: int) -> None:
            peer.accept(peer.request())
            self.assertEqual(peer.message(), {"type": "hello"})
            peer.send(text(WELCOME), observation(1, "4a"), observation(2, "4a"))
            self.assertEqual(peer.message(), {"type": "resync"})
            peer.send(observation(3, "4a"), observation(4, DIGEST, full=True, missed=2, patches=FULL))
            peer.frame()

        with Fake(serve) as fake, Agent(fake.server, "s", "a") as agent:
            seen = agent.observe(5)
            assert seen is not None
            self.assertEqual((seen.view_seq, seen.full, seen.missed), (4, True, 2))
        self.assertIsNone(fake.error)

    def test_a_gap_asks_for_a_full_view(self) -> None:
        def serve(peer: Peer, _: int) -> None:
            peer.accept(peer.request())
            peer.message()
            peer.send(text(WELCOME), observation(1, DIGEST, full=True, patches=FULL), observation(3, DIGEST))
            self.assertEqual(peer.message(), {"type": "resync"})
            peer.send(observation(3, DIGEST, full=True, patches=FULL))
            peer.frame()

        with Fake(serve) as fake, Agent(fake.server, "s", "a") as agent:
            self.assertEqual([o.view_seq for o in (agent.observe(5), agent.observe(5)) if o], [1, 3])
        self.assertIsNone(fake.error)

    def test_codes_and_waits(self) -> None:
        codes = [1011, 1006, 4008, 4005]
        hellos = []

        def serve(peer: Peer, n: int) -> None:
            peer.accept(peer.request())
            hellos.append(peer.message())
            peer.send(text(WELCOME), observation(7, DIGEST, full=True, patches=FULL) if n == 0 else b"")
            if n == 0:
                self.assertEqual(peer.frame(), (1, b'{"type": "ack", "view_seq": 7}'))
            if codes[n] != 1006:
                peer.send(frame(8, struct.pack("!H", codes[n])))

        with Fake(serve) as fake, Agent(fake.server, "s", "a", backoff=Backoff(first=0.01)) as agent:
            agent.observe(5)
            with self.assertRaises(ConnectionEnded) as ended:
                agent.observe(5)
            self.assertEqual(ended.exception.code, 4005)
            with self.assertRaises(ConnectionEnded):
                agent.submit("Speak")
        self.assertEqual(hellos, [{"type": "hello"}] + 3 * [{"type": "hello", "view_seq": 7}])

    def test_backoff(self) -> None:
        self.assertEqual(list(Backoff(0.5, 3, 5).delays()), [0.5, 1, 2, 3, 3])

    def test_nonsense_ends_the_connection(self) -> None:
        for message in (b"{", b"[]", b'{"type":1}', b'{"type":"stop"}', b'{"type":"observation"}', b'{"type":"outcome","req_id":"r","outcome":{}}'):
            def serve(peer: Peer, _: int, message: bytes = message) -> None:
                peer.accept(peer.request())
                peer.message()
                peer.send(text(WELCOME), text({"type": "a message of a later version"}), frame(1, message))
                peer.frame()

            with self.subTest(message), Fake(serve) as fake, Agent(fake.server, "s", "a") as agent, self.assertRaises(ProtocolError):
                agent.observe(5)

    def test_a_stop_calls_the_model_off(self) -> None:
        def serve(peer: Peer, _: int) -> None:
            peer.accept(peer.request())
            peer.message()
            peer.send(text(WELCOME))
            self.assertEqual(peer.message()["type"], "begin")
            peer.send(text({"type": "begun", "req_id": "g", "context_seq": 0, "context_digest": DIGEST}))
            self.assertEqual(peer.message(), {"type": "tokens", "req_id": "g", "text": "Well", "count": 1})
            peer.send(text({"type": "stop", "req_id": "g", "code": "TIMEOUT", "reason": "deadline_exceeded"}))
            peer.frame()

        called = []
        with Fake(serve) as fake, Agent(fake.server, "s", "a") as agent:
            with self.assertRaises(Stopped) as stopped, agent.begin(req_id="g", on_stop=called.append) as g:
                self.assertTrue(g.write("Well"))
                self.assertTrue(g.wait(5))
                g.write(", no")
            self.assertEqual((called, stopped.exception.code, stopped.exception.stale), ([stopped.exception], "TIMEOUT", False))
        self.assertIsNone(fake.error)

    def test_a_silent_server_is_lost(self) -> None:
        def serve(peer: Peer, _: int) -> None:
            peer.accept(peer.request())
            peer.message()
            peer.send(text({**WELCOME, "heartbeat_ms": 20}))
            peer.frame()

        with Fake(serve) as fake, Agent(fake.server, "s", "a", backoff=Backoff(tries=0)) as agent:
            began = time.monotonic()
            with self.assertRaises(TimeoutError):
                agent.observe(5)
            self.assertLess(time.monotonic() - began, 4)
