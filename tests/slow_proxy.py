"""A loopback HTTP proxy in front of a test server, which waits before it passes a request on, and counts them.

It stands between every client and the server, so the requests of the data-file codec are counted and slowed as ours
are. Connections are kept open on both sides; each has a thread of its own.

``python -m tests.slow_proxy SERVER SECONDS`` prints its address, and runs until its input ends.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

__all__ = ["Request", "SlowProxy", "rounds", "slow_proxy"]

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Request:
    """One request: method, path, when it came, and when its answer went back (seconds of the monotonic clock)."""

    method: str
    target: str
    began: float
    ended: float


@dataclass
class SlowProxy:
    """The proxy's address, how long each request waits, and what has passed so far."""

    endpoint: str
    seconds: float = 0.0
    passed: list[Request] = field(default_factory=list)

    @contextmanager
    def counted(self) -> Iterator[list[Request]]:
        """The requests that are made inside the block; filled when it ends."""
        begin, found = len(self.passed), []
        yield found
        found.extend(self.passed[begin:])


def rounds(requests: list[Request]) -> int:
    """How many requests came one after the other: the longest chain in which each began after the last had ended."""
    count, ended = 0, float("-inf")
    for request in sorted(requests, key=lambda request: request.ended):
        if request.began >= ended:
            count, ended = count + 1, request.ended
    return count


@contextmanager
def slow_proxy(server: str, seconds: float = 0.0) -> Iterator[SlowProxy]:
    """A proxy in front of ``server`` (``http://host:port``)."""
    place = urlsplit(server)
    assert place.hostname is not None and place.port is not None
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    proxy = SlowProxy(f"http://127.0.0.1:{listener.getsockname()[1]}", seconds)
    acceptor = threading.Thread(target=_accept, args=(listener, (place.hostname, place.port), proxy), daemon=True)
    acceptor.start()
    try:
        yield proxy
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        acceptor.join(timeout=5)


def _accept(listener: socket.socket, server: tuple[str, int], proxy: SlowProxy) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_serve, args=(client, server, proxy), daemon=True).start()


def _serve(client: socket.socket, server: tuple[str, int], proxy: SlowProxy) -> None:
    """The requests of one connection, one after the other."""
    with suppress(OSError), client, socket.create_connection(server) as upstream:
        upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        from_client, from_server = _Stream(client), _Stream(upstream)
        while True:
            head = from_client.head()
            if not head:
                return
            began = time.monotonic()
            method, target, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
            body = from_client.body(head)
            time.sleep(proxy.seconds)
            upstream.sendall(head + body)
            answer = from_server.head()
            while answer.split(b" ", 2)[1] == b"100":
                answer = from_server.head()
            content = b"" if method == "HEAD" else from_server.body(answer, is_answer=True)
            proxy.passed.append(Request(method, target, began, time.monotonic()))
            client.sendall(answer + content)
            if b"connection: close" in answer.lower():
                return


class _Stream:
    """Whole messages from a socket."""

    def __init__(self, source: socket.socket) -> None:
        self._source, self._held = source, b""

    def head(self) -> bytes:
        """Everything up to the empty line; empty if the other side has closed."""
        while b"\r\n\r\n" not in self._held:
            part = self._source.recv(_CHUNK)
            if not part:
                return b""
            self._held += part
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        return head + b"\r\n\r\n"

    def body(self, head: bytes, *, is_answer: bool = False) -> bytes:
        """What follows a head, as it came."""
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:] if line)
        fields = {name.strip().lower(): value.strip() for name, _, value in lines}
        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            return self._chunks()
        if is_answer and head.split(b" ", 2)[1] in (b"204", b"304"):
            return b""
        return self._exactly(int(fields.get(b"content-length", b"0")))

    def _exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            part = self._source.recv(_CHUNK)
            if not part:
                raise OSError("the connection was closed in the middle of a message")
            self._held += part
        body, self._held = self._held[:size], self._held[size:]
        return body

    def _chunks(self) -> bytes:
        parts = []
        while True:
            while b"\r\n" not in self._held:
                self._held += self._source.recv(_CHUNK)
            line, _, self._held = self._held.partition(b"\r\n")
            size = int(line.split(b";")[0], 16)
            parts.append(line + b"\r\n" + self._exactly(size + 2))
            if size == 0:
                return b"".join(parts)


if __name__ == "__main__":
    with slow_proxy(sys.argv[1], float(sys.argv[2])) as running:
        print(running.endpoint, flush=True)
        sys.stdin.read()
