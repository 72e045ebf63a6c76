"""The hosts that a notebook asks beside the tape: seen, and never those of our own requests."""

import asyncio
import socket

import pytest

from agent_nb.errors import ModelError
from agent_nb.models.http.client import Http
from agent_nb.tape.contact import Contact
from agent_nb.tape.host_watch import HostWatch

ANSWER = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9))]


@pytest.fixture
def watched(monkeypatch):
    """Contacts that a watch reports; every name leads to a closed port of this machine."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ANSWER)
    watch = HostWatch()
    watch.start()
    yield watch
    watch.stop()


def in_cell(code):
    """Run code as IPython runs a cell, in a file of its own name."""
    scope = {"asyncio": asyncio, "socket": socket}
    exec(compile(code, "/tmp/ipykernel_1/2.py", "exec"), scope)
    return scope


def test_a_look_up_of_a_library_has_the_line_of_the_cell(watched):
    in_cell("\n\ntry:\n    socket.create_connection(('a.example', 443))\nexcept OSError: pass")
    assert watched.take_contacts() == [Contact("a.example", 443, 4)]
    in_cell("try:\n    socket.create_connection(('a.example', 443))\nexcept OSError: pass")
    assert watched.take_contacts() == []


def test_a_look_up_of_an_event_loop_has_the_line_of_the_cell(watched):
    scope = in_cell("async def f():\n    await asyncio.open_connection('A.example.', 80)")
    with pytest.raises(OSError, match="failed"):
        asyncio.run(scope["f"]())
    assert watched.take_contacts() == [Contact("a.example", 80, 2)]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.2", "::1", "0.0.0.0", None, ""])
def test_this_machine_is_not_reported(watched, name):
    socket.getaddrinfo(name, 80)
    assert watched.take_contacts() == []


def test_our_own_requests_are_not_reported(watched):
    async def ask():
        async with Http("http://b.example/v1").post("/x", b"{}", {}):
            pass

    with pytest.raises(ModelError):
        asyncio.run(ask())
    assert watched.take_contacts() == []


def test_a_stopped_watch_leaves_the_look_ups_as_they_were():
    before = socket.getaddrinfo, asyncio.BaseEventLoop.getaddrinfo
    watch = HostWatch()
    watch.start()
    assert socket.getaddrinfo is not before[0]
    watch.stop()
    assert (socket.getaddrinfo, asyncio.BaseEventLoop.getaddrinfo) == before


def test_a_wrapper_of_other_code_stays_when_the_watch_stops(watched):
    watch = HostWatch()
    watch.start()
    below = socket.getaddrinfo

    def other(*args):
        return below(*args)

    socket.getaddrinfo = other
    watch.stop()
    assert socket.getaddrinfo is other
    assert other("c.example", 1) == ANSWER
    assert watch.take_contacts() == []


@pytest.mark.parametrize(
    ("contact", "address"),
    [
        (Contact("openrouter.ai", 443), "https://openrouter.ai/api/v1"),
        (Contact("api.anthropic.com", 443), "https://api.anthropic.com"),
        (Contact("lab.example", 8000), "http://lab.example:8000/v1"),
        (Contact("lab.example", 443), "https://lab.example/v1"),
        (Contact("fd00::1", 80), "http://[fd00::1]/v1"),
    ],
)
def test_a_notice_names_the_line_that_records_the_call(contact, address):
    assert f'base_url=tape.url("{address}")' in contact.notice


def test_a_name_with_quotes_is_quoted():
    assert 'tape.url("https://a\\")' in Contact('a")#', 443).notice
