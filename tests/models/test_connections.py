"""The connections of a model follow its requests."""

import asyncio
import subprocess
import sys
import threading

import anyio
import pytest
from helpers.paths import CHECKOUT
from helpers.waiting import wait

from agent_nb.models.http import connections as module
from agent_nb.models.http.connections import Connections
from agent_nb.models.openai import provider


class Pools:
    """Makes ways that send nothing, and counts those that are open."""

    def __init__(self):
        self.made, self.open = 0, 0

    def __call__(self):
        pools = self

        class Unused:
            closed = False

            async def aclose(self):
                self.closed = True
                pools.open -= 1

        self.made += 1
        self.open += 1
        return Unused()


def test_requests_one_after_another_share_one_connection():
    async def main():
        connections = Connections(pools)
        for _ in range(50):
            with connections.lend():
                pass

    pools = Pools()
    wait(main)
    assert pools.made == 1


def test_each_request_at_once_has_a_connection_that_the_next_take_again():
    async def main():
        connections, lent = Connections(pools), []

        async def ask():
            with connections.lend() as way:
                lent.append(way)
                await anyio.sleep(0.001)

        for _ in range(2):
            async with anyio.create_task_group() as group:
                for _ in range(30):
                    group.start_soon(ask)
        return {lent.count(way) for way in lent}

    pools = Pools()
    assert wait(main) == {2}
    assert pools.made == 30


def test_connections_without_requests_are_closed_after_a_while_all_but_one(monkeypatch):
    monkeypatch.setattr(module, "KEEP", 0.01)

    async def main():
        connections = Connections(pools)
        held = [connections.lend() for _ in range(30)]
        for each in held:
            each.__enter__()
        for each in held:
            each.__exit__(None, None, None)
        while pools.open > 1:
            await anyio.sleep(0.005)
        with connections.lend() as way:
            return way.closed

    pools = Pools()
    assert wait(main) is False


def test_all_are_closed_with_their_event_loop():
    async def main():
        connections = Connections(pools)
        await connections.keep()
        held = [connections.lend() for _ in range(20)]
        for each in held:
            each.__enter__()
        return held

    pools = Pools()
    wait(main)
    assert (pools.made, pools.open) == (20, 0)


SSE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 66\r\n\r\n"
    b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n'
    b"data: [DONE]\n\n    "
)


class Lab(asyncio.Protocol):
    """Answers when all that are expected have asked, counts connections."""

    expected, made, waiting = 1, 0, ()

    def connection_made(self, transport):
        self.transport = transport
        Lab.made += 1

    def data_received(self, data):
        if data.endswith(b"}"):
            Lab.waiting = (*Lab.waiting, self.transport)
        if len(Lab.waiting) == Lab.expected:
            waiting, Lab.waiting = Lab.waiting, ()
            for transport in waiting:
                transport.write(SSE)


def test_an_answer_in_one_event_loop_goes_on_while_another_loop_begins(serve, request_of):
    asked, begun = threading.Event(), threading.Event()

    def slow(peer):
        peer.begin()
        peer.send('data: {"choices":[{"delta":{"content":"slow"}}]}\n\n')
        asked.set()
        assert begun.wait(10)
        peer.send("data: [DONE]\n\n")
        peer.end()

    def quick(peer):
        peer.stream('data: {"choices":[{"delta":{"content":"quick"}}]}\n\n', "data: [DONE]\n\n")

    model, texts = provider("m", base_url=serve(slow, quick).url), {}

    async def ask(name):
        async for batch in model.stream(request_of("hi")):
            texts[name] = texts.get(name, "") + "".join(getattr(p, "text", "") for p in batch)

    first = threading.Thread(target=lambda: wait(lambda: ask("first")))
    first.start()
    assert asked.wait(10)
    wait(lambda: ask("second"))
    begun.set()
    first.join()
    assert texts == {"first": "slow", "second": "quick"}


MANY = """
import asyncio, resource, sys
count, soft, hard, seconds, port = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from agent_nb.errors import ModelError
from agent_nb.models.messages import Request, text_message
from agent_nb.models.config import Timeouts
from agent_nb.models.openai import provider
limits = Timeouts(first_byte=seconds)
model = provider("m", base_url=f"http://127.0.0.1:{port}/v1", timeouts=limits)
async def ask():
    try:
        async for _ in model.stream(Request(messages=(text_message("user", "hi"),))):
            pass
        return "ok"
    except ModelError as fault:
        return str(fault)
async def main():
    for words in sorted(set(await asyncio.gather(*(ask() for _ in range(count))))):
        print(words)
asyncio.run(main())
"""


def many(count, soft, hard, *, expected, seconds):
    """Ask so many at once in a process with these limits of open files; return its lines.

    They are answered once so many are there, and given up after so many seconds.
    """

    async def main():
        Lab.expected, Lab.made, Lab.waiting = expected, 0, ()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Lab, "127.0.0.1", 0, backlog=2048)  # 100 lose connections
        port = server.sockets[0].getsockname()[1]
        command = [sys.executable, "-c", MANY, *map(str, (count, soft, hard, seconds, port))]
        async with server:
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, cwd=CHECKOUT, timeout=100
            )
        assert not done.stderr
        return done.stdout.splitlines()

    return asyncio.run(main())


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_thousand_answers_at_once_stay_within_the_limit_of_open_files():
    assert many(1000, 256, 2048, expected=1000, seconds=90) == ["ok"]
    assert Lab.made == 1000


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_more_answers_at_once_than_open_files_allow_is_an_error():
    lines = many(100, 64, 64, expected=100, seconds=1)
    assert any("only 64 files may be open at once here" in line for line in lines)
    assert any("ulimit -n" in line for line in lines)
