"""Connections that are opened and not used: each is let go in time, and they do not keep others
out.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_nb import events as ev
from agent_nb.server.app import Settings

PATIENCE = 20.0  # s; a server that never lets go is what these tests are about
SHORT = 0.3


@pytest.fixture
def connect() -> Iterator[Any]:
    """Open connections to a rig's server; they are closed at the end."""
    with contextlib.ExitStack() as held:

        def connect(rig: Any) -> socket.socket:
            made = held.enter_context(
                socket.create_connection(("127.0.0.1", rig.server.port), timeout=PATIENCE)
            )
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made

        yield connect


@contextlib.contextmanager
def held(rig: Any) -> Iterator[None]:
    """Let a rig's server notice nothing until the block has ended.

    Else this thread could pause between a connection and its request for as long as a head may
    take.
    """
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go_on.wait(PATIENCE)

    until(lambda: rig.server._server.started)  # its port is open before
    rig.server._server.servers[0].get_loop().call_soon_threadsafe(hold)
    assert held.wait(PATIENCE)
    try:
        yield
    finally:
        go_on.set()


def ask(rig: Any, connect: Any, request: str) -> socket.socket:
    """Return a connection that comes to a rig's server together with a request."""
    host = f"host: 127.0.0.1\r\nauthorization: {rig.client.headers['authorization']}\r\n"
    first, rest = request.split("\r\n", 1)
    with held(rig):
        connection: socket.socket = connect(rig)
        connection.sendall(f"{first}\r\n{host}{rest}".encode())
    return connection


def read(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes. Raises TimeoutError when it does not."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            got += data
    return got


def drip(connection: socket.socket) -> bytes:
    """Send a byte at a time without end; return what the server says before it closes."""
    connection.settimeout(0.02)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            connection.sendall(b"x")
            return connection.recv(65536)
        except TimeoutError:
            continue
        except ConnectionError:
            return b""
    raise AssertionError("the server waits for ever")


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_connection_that_says_nothing_is_closed(rig, connect):
    assert read(connect(rig(settings=Settings(head=SHORT)))) == b""


def test_a_head_that_comes_byte_by_byte_is_cut_off_while_others_are_served(rig, connect):
    made = rig(settings=Settings(head=SHORT))
    slow = [connect(made) for _ in range(20)]
    for connection in slow:
        connection.sendall(b"GET /health HTTP/1.1\r\nx-a: ")
    assert b"200 OK" in ask(made, connect, "GET /health HTTP/1.1\r\n\r\n").recv(65536)
    assert [drip(connection) for connection in slow[:2]] == [b"", b""]
    assert [read(connection) for connection in slow[2:]] == [b""] * 18


def test_the_head_of_a_later_request_is_timed_too(rig, connect):
    made = rig(settings=Settings(head=SHORT))
    connection = ask(made, connect, "GET /health HTTP/1.1\r\n\r\n")
    assert b"200 OK" in connection.recv(65536)
    connection.sendall(b"GET /health HT")
    assert b"200 OK" not in read(connection)


def test_a_body_that_does_not_come_is_given_up(rig, connect):
    made = rig(settings=Settings(head=SHORT))
    connection = ask(made, connect, "POST /runs HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{")
    assert b"408" in connection.recv(65536)


def test_a_stream_lasts_longer_than_a_head_may_take(rig, connect):
    made = rig(settings=Settings(head=SHORT, keepalive=0.05))
    run = made.publish("r", ev.User(content="go"))
    connection = ask(made, connect, "GET /runs/r/events HTTP/1.1\r\nconnection: close\r\n\r\n")
    begin = time.monotonic()
    while time.monotonic() - begin < 3 * SHORT:
        assert connection.recv(65536)  # a comment each twentieth of a second
    run.feed(ev.Respond(content="late"), ev.End())
    assert b"late" in read(connection)


def test_one_connection_too_many_is_refused_and_room_is_found_again(rig, connect):
    made = rig(settings=Settings(connections=3))
    held = [connect(made) for _ in range(3)]
    until(lambda: len(made.server._server.server_state.connections) == 3)
    answer = read(connect(made))
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"Too many connections" in answer
    held[0].close()
    until(lambda: len(made.server._server.server_state.connections) < 3)
    assert made.client.get("/health").status_code == 200
