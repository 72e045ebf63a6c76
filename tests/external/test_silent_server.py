"""A server that takes a request and never answers is not waited for without end."""

import errno
import json
import re
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from helpers.paths import OPEN_FILES, open_files
from helpers.tcp_server import listen
from helpers.waiting import wait
from msgspec.structs import replace

from agent_nb.errors import AgentError, ModelError, UsageError
from agent_nb.external import connect, server_notes
from agent_nb.external.attached_run import Attached, attach
from agent_nb.external.connect import Backoff, Target
from agent_nb.external.http_stream import read_stream

QUICK = Backoff(first_wait=0.001, longest_wait=0.01, patience=0.6, unreached=0.1, idle=0.3)
ANSWERED = replace(QUICK, idle=20)  # where the server answers, however late the loop goes on


@asynccontextmanager
async def silent_server():
    """Yield the address of a server that reads every request and answers none."""

    async def serve(reader, writer):
        await reader.read()

    async with listen(serve) as port:
        yield f"http://127.0.0.1:{port}"


async def newest(server):
    await attach(server, backoff=QUICK)


async def cancel(server):
    await Attached(Target(server, "r")).cancel()


async def approve(server):
    control = Attached(Target(server, "r"))
    await control.approve("c1", allow=True, args=None, scope="once", reason="")


async def follow(server):
    await attach(f"{server}/runs/r", backoff=ANSWERED)


@pytest.mark.parametrize("ask", [newest, cancel, approve])
def test_a_short_request_without_an_answer_is_an_error(ask, monkeypatch):
    monkeypatch.setattr(connect, "REPLY_TIMEOUT", 0.2)

    async def main():
        async with silent_server() as server:
            with pytest.raises(UsageError, match=r"does not answer \(no answer came for 0.2 s\)"):
                await ask(server)

    wait(main)


def answer_each(answer):
    """Return a server that sends an answer to a request, and then nothing."""

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await reader.read()

    return serve


def check_refusal(ask, answer, words):
    """Assert that `ask` raises `words` if a server sends an answer and then nothing."""

    async def main():
        async with listen(answer_each(answer)) as port:
            with pytest.raises(UsageError, match=words):
                await ask(f"http://127.0.0.1:{port}")

    wait(main)


def test_a_refusal_whose_body_never_ends_says_what_came(monkeypatch):
    monkeypatch.setattr(connect, "REPLY_TIMEOUT", 0.2)
    answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 900\r\n\r\nonly for Ada"
    check_refusal(follow, answer, r"refuses \(403\): only for Ada")


@pytest.mark.parametrize("ask", [follow, newest, approve])
def test_control_characters_of_a_refusal_reach_no_terminal(ask):
    answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 8\r\n\r\n\x1b[31mred"
    check_refusal(ask, answer, r"\(403\): \\x1b\[31mred")


def test_a_refused_answer_says_how_to_attach_with_a_token():
    answer = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 8\r\n\r\nno token"
    check_refusal(approve, answer, r"\(401\): no token Attach again with \?token=")


def test_a_foreign_stream_whose_head_never_comes_is_an_error():
    async def main():
        async with silent_server() as server:
            with pytest.raises(ModelError, match=r"broke off: no answer came for 0.3 s"):
                async for _ in read_stream(f"{server}/x", backoff=QUICK):
                    pass

    wait(main)


def test_a_run_that_never_answered_ends_with_the_time_it_was_waited_for():
    backoff = Backoff(first_wait=0.001, longest_wait=0.01, unreached=0.1, idle=1.1)

    words = r"after (\d+) s without news: no answer came for 1.1"

    async def main():
        async with silent_server() as server:
            began = anyio.current_time()
            with pytest.raises(AgentError, match=words) as caught:
                await attach(f"{server}/runs/r", backoff=backoff)
            return int(re.search(words, str(caught.value))[1]), anyio.current_time() - began

    said, took = wait(main)
    assert 1 <= said <= round(took)


@pytest.mark.parametrize("status", ["403 Forbidden", "200 OK"])
def test_a_refusal_whose_body_breaks_off_is_an_error_at_once(status):
    requests = []

    async def serve(reader, writer):
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 900\r\n\r\nonly for Ada".encode())
        writer.close()

    async def main():
        async with listen(serve) as port:
            with pytest.raises(UsageError):
                await attach(f"http://127.0.0.1:{port}/runs/r", backoff=ANSWERED)
            assert len(requests) == 1
            with suppress(AgentError):
                async for _ in read_stream(f"http://127.0.0.1:{port}/x", backoff=ANSWERED):
                    pass

    wait(main)


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"runs": [{"run": "\\ud800"}]}', b'{"runs": [{"id": "r"}]}']
)
def test_a_list_of_runs_that_cannot_be_read_is_refused_in_words(body):
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    async def main():
        async with listen(answer_each(answer)) as port:
            with pytest.raises(UsageError, match="does not list runs"):
                await attach(f"http://127.0.0.1:{port}", backoff=QUICK)

    wait(main)


def test_the_newest_of_thousands_of_runs_is_found():
    prompt = "\U0001f4c8" * 200
    runs = [
        {"run": f"run{n:09d}", "prompt": prompt, "conversation": "c" * 200} for n in range(5000)
    ]
    body = json.dumps({"runs": runs}, ensure_ascii=False).encode()

    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    async def main():
        async with listen(answer_each(answer)) as port:
            server = f"http://127.0.0.1:{port}"
            async with connect.connect(Target(server)) as client:
                assert await connect.find_newest_run(client, server) == "run000004999"

    wait(main)


def test_without_room_for_its_note_a_server_leaves_none(tmp_path, monkeypatch):
    def write(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(server_notes.os, "write", write)
    assert server_notes.write_server_note("http://127.0.0.1:1", "t" * 12, tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    if OPEN_FILES.exists():
        assert open_files(tmp_path) == []


def test_a_note_is_removed_where_an_open_file_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setattr(server_notes, "_REMOVES_OPEN_FILES", False)
    unlink, note = Path.unlink, None

    def refuse_open(path, missing_ok=False):
        if note is not None and note._file >= 0:
            raise PermissionError("The file is used by a process.")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse_open)
    note = server_notes.write_server_note("http://127.0.0.1:1", "t" * 12, tmp_path)
    note.close()
    assert list(tmp_path.iterdir()) == []


def test_a_list_of_runs_that_breaks_off_is_an_error():
    body = b'{"runs": [{"run": "r"}]}'

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body) + 9, body))
        writer.close()

    async def main():
        async with listen(serve) as port:
            with pytest.raises(UsageError, match=r"does not answer \(peer closed connection"):
                await newest(f"http://127.0.0.1:{port}")

    wait(main)


@pytest.mark.parametrize(("token", "sent"), [("t-1", b"Bearer t-1"), ("", b"Basic ZXZlOnB3")])
def test_a_token_is_sent_rather_than_the_user_of_the_address(token, sent):
    heads = []

    async def serve(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def main():
        async with listen(serve) as port:
            with pytest.raises(UsageError):
                await attach(f"http://eve:pw@127.0.0.1:{port}", token)
            with pytest.raises(UsageError):
                async for _ in read_stream(f"http://eve:pw@127.0.0.1:{port}", token=token):
                    pass

    wait(main)
    assert [b"Authorization: " + sent + b"\r\n" in head for head in heads] == [True, True]
