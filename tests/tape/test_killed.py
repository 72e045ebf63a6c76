"""Model calls whose kernel, client or server is killed: what came is kept, and no half is replayed.

How it is known what came: the client writes what it reads to a file of its own, unbuffered, and
everything that the relay passes on stands in the journal before.

`AGENT_NB_KILLS` says how many calls are killed (6 if it is not set; 60 is the full proof).
"""

import json
import os
import random
import signal
import sys
import time
from contextlib import suppress

import pytest
from helpers.model_server import Server
from tape.answers import chat_chunks, sse

from agent_nb.notebook.cell.taped_calls import TapedCall, drop_retried
from agent_nb.notebook.files.library import Library
from agent_nb.notebook.files.notebook_file import NotebookFile
from agent_nb.notebook.files.recovery import find_lost_runs, recover_run
from agent_nb.record.journal import Journal
from agent_nb.record.journal_recovery import RecoverableRun, read_journal
from agent_nb.record.packing import Home
from agent_nb.record.record import RECORD_MIME, log_of
from agent_nb.record.signing import is_intact
from agent_nb.tape.call_journal import CallJournal
from agent_nb.tape.exchange import Body, Exchange, Request, Response
from agent_nb.tape.packed import read_exchange
from agent_nb.tape.run_log import make_logs

KILLS = int(os.environ.get("AGENT_NB_KILLS", "6"))
VICTIMS = ("kernel", "client", "server")
WORDS = [f"word{n} " for n in range(300)]
BODY = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "Count."}], "stream": True}
KEY = "sk-proj-" + "Ab3" * 12
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")

# reads a streamed answer, and writes each line that came to a file
CLIENT = f"""\
import os, sys, urllib.request
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {json.dumps(BODY)!r}.replace("Count", sys.argv[1]).encode(),
    {{"content-type": "application/json", "authorization": "Bearer {KEY}"}})
with urllib.request.urlopen(request) as answer:
    file = os.open("got", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    while line := answer.readline():
        os.write(file, line)
"""
SETUP = "%load_ext agent_nb\n%agent tape\nPROMPT = 'Count'\nimport subprocess, sys\nfrom pathlib import Path"
CALL = """\
child = subprocess.Popen([sys.executable, "client.py", PROMPT], stderr=subprocess.DEVNULL)
Path("pid").write_text(str(child.pid))
child.wait()"""


def text_of(log):
    """Return what the model has said."""
    return "".join(event.content for event in log.of("respond"))


def read_got(folder):
    """Return the text that the client has read."""
    lines = (folder / "got").read_text().split("\n") if (folder / "got").exists() else []
    chunks = []
    for line in lines:
        with suppress(ValueError):
            chunks.append(json.loads(line.removeprefix("data: ")))
    return "".join(c["delta"].get("content", "") for chunk in chunks for c in chunk["choices"])


class Killer:
    """A server that sends an answer up to a byte, and then kills who is to be killed."""

    def __init__(self, chance):
        self.chance, self.data = chance, sse(*chat_chunks(WORDS))
        self.server = Server(self._answer)
        self.kill = lambda: None  # returns whether the server sends the rest

    def _answer(self, peer):
        at = self.chance.randrange(len(self.data))
        peer.begin()
        for start in range(0, at, 997):
            peer.send(self.data[start : min(start + 997, at)].decode())
        time.sleep(self.chance.uniform(0, 0.02))
        if self.kill():
            peer.send(self.data[at:].decode())
            peer.end()


@pytest.fixture
def killer(monkeypatch):
    made = Killer(random.Random(29))
    monkeypatch.setenv("OPENAI_BASE_URL", made.server.url)
    yield made
    made.server.close()


def call(kernel, killer, victim, folder, number):
    """Make a call in a kernel, and kill the victim in the midst of it; return the record."""
    assert kernel.run(f"PROMPT = 'Count {number}'")[0] == "ok"  # else a whole record could answer
    (folder / "client.py").write_text(CLIENT)
    (folder / "pid").unlink(missing_ok=True)
    if victim == "server":
        killer.kill = lambda: False
    elif victim == "client":
        killer.kill = lambda: kill_client(folder)
    else:
        killer.kill = lambda: os.kill(kernel.manager.provisioner.pid, signal.SIGKILL) or True
    request = kernel.send(CALL, cell="c1")
    if victim == "kernel":
        kernel.manager.provisioner.process.wait(30)
        return None
    _, _, shown = kernel.finish(request)
    return next(s["data"][RECORD_MIME] for s in shown.values() if RECORD_MIME in s["data"])


def kill_client(folder):
    """Kill the client once it has begun to read; before, the relay may have no answer to keep."""
    until = time.monotonic() + 20
    while not ((folder / "got").exists() and (pid := (folder / "pid").read_text())):
        assert time.monotonic() < until
        time.sleep(0.002)
    os.kill(int(pid), signal.SIGKILL)
    return True


@POSIX
@pytest.mark.kernel
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_kill_keeps_what_had_come_and_replays_no_half_answer(killer, kernel_type, tmp_path):
    kernel, cut = None, 0
    try:
        for number in range(KILLS):
            if kernel is None:
                kernel = kernel_type(sys.executable, tmp_path)
                assert kernel.run(SETUP)[0] == "ok"
            victim = VICTIMS[number % len(VICTIMS)]
            earlier = {run.path for run in RecoverableRun.list_all()}
            (tmp_path / "got").unlink(missing_ok=True)
            record = call(kernel, killer, victim, tmp_path, number)
            got = read_got(tmp_path)
            newest = next((r for r in RecoverableRun.list_all() if r.path not in earlier), None)
            if newest is None:  # its journal opens while the request is on its way
                assert (record, got) == (None, "")
                kernel.close()
                kernel, cut = None, cut + 1
                continue
            if record is None:
                kernel.close()
                kernel = None
                assert newest.status == "lost"
                _, record = recover_run(newest, Library({}))
                assert read_exchange(record) is None
            else:
                exchange = read_exchange(record)
                assert newest.header.run == record["id"]
                assert text_of(RecoverableRun.recover(newest.path)) == text_of(log_of(record))
                assert (
                    exchange is None
                    or not exchange.is_replayable
                    or exchange.response.body.is_ended
                )
            assert is_intact(record)
            assert record["tape"] == 1
            text = text_of(log_of(record))
            assert text.startswith(got)
            assert "".join(WORDS).startswith(text)
            cut += record["status"] == "interrupted"
    finally:
        if kernel is not None:
            kernel.close()
    assert cut > KILLS // 2


@POSIX
@pytest.mark.kernel
def test_the_next_kernel_shows_a_call_of_a_killed_one_and_makes_it_anew(
    provider, kernel_type, tmp_path, monkeypatch
):
    provider.stall = True
    (tmp_path / "client.py").write_text(CLIENT)
    first = kernel_type(sys.executable, tmp_path)
    try:
        assert first.run(SETUP)[0] == "ok"
        first.send(CALL, cell="c1")
        until = time.monotonic() + 30
        while not read_got(tmp_path).endswith("server."):
            assert time.monotonic() < until
            time.sleep(0.01)
        os.kill(first.manager.provisioner.pid, signal.SIGKILL)
        first.manager.provisioner.process.wait(30)
    finally:
        first.close()
    (lost,) = RecoverableRun.list_all()
    assert (lost.status, lost.prompt, lost.header.cell) == ("lost", "Count.", "c1")
    assert KEY not in lost.path.read_text()
    monkeypatch.setenv("AGENT_NB_RERUN", "replay")
    second = kernel_type(sys.executable, tmp_path)
    try:
        assert second.run(SETUP)[0] == "ok"
        listed = next(iter(second.run("%agent recover")[2].values()))["data"]["text/plain"]
        assert lost.header.run in listed
        status, _, shown = second.run(f"%agent recover {lost.header.run}")
        assert status == "ok"
        assert "Hello from the server." in json.dumps(list(shown.values()))
        shown = second.run(CALL, cell="c1")[2]
        assert "no model call of this notebook is recorded" in json.dumps(list(shown.values()))
    finally:
        second.close()
    assert len(provider.asked) == 1


def test_the_journal_of_a_call_refused_for_a_time_goes_with_it(provider, loaded):
    provider.replies = [500, 429]
    loaded.run_cell("%agent tape").raise_error()
    code = (
        "import os, urllib.request\n"
        "for _ in range(3):\n"
        "    try:\n"
        "        urllib.request.urlopen(os.environ['OPENAI_BASE_URL'] + '/chat/completions', b'{}').read()\n"
        "    except urllib.error.HTTPError:\n"
        "        pass"
    )
    loaded.run_cell(code).raise_error()
    loaded.run_cell("%agent tape off").raise_error()
    (journal,) = RecoverableRun.list_all()
    assert journal.status == "ok"


@pytest.mark.parametrize(("reason", "end"), [(None, "stream broke off"), ("stop", "reader went")])
def test_the_run_of_an_answer_that_broke_off_says_so_once(reason, end):
    request = Request(
        provider="openai", path="/chat/completions", body=Body("json", {"model": "m"})
    )
    choice = {"index": 0, "delta": {"content": "Hel"}, "finish_reason": reason}
    body = Body("stream", [{"data": {"choices": [choice]}}])
    exchange = Exchange(request=request, response=Response(body=body, complete=False))
    (log,) = make_logs([TapedCall(exchange, 1.0, 2.0)])
    (error,) = (event for event in log if event.type == "error")
    assert end in error.message
    assert log[-1].status == "interrupted"


def test_an_attempt_that_was_read_late_counts_with_the_call_after_it():
    def call(status, began):
        request = Request(provider="openai", body=Body("json", {"model": "m"}))
        return TapedCall(Exchange(request=request, response=Response(status=status)), began, began)

    (last,) = drop_retried([call(429, 1.0), call(200, 2.0), call(500, 0.0)])
    assert (last.exchange.response.status, last.exchange.attempts) == (200, 3)


def test_of_equal_calls_one_that_fails_is_no_attempt_of_another():
    def call(status, began, answered):
        exchange = Exchange(
            request=Request(provider="openai", body=Body("json", {"model": "m"})),
            response=Response(status=status),
        )
        return TapedCall(exchange, began, answered, answered)

    def show(*calls):
        return [(c.exchange.response.status, c.exchange.attempts) for c in drop_retried([*calls])]

    others = [call(200, 1.0 + n / 10, 3.0) for n in range(9)]
    assert show(call(503, 1.0, 2.0), *others) == [(503, 1), *[(200, 1)] * 9]
    # two fail, and one of them is sent again
    failed = [call(503, 1.0, 2.0), call(503, 1.1, 2.1)]
    assert show(*failed, call(200, 2.5, 3.0)) == [(503, 1), (200, 2)]
    both = call(200, 2.5, 3.0), call(200, 2.6, 3.0)
    assert show(*failed, *both) == [(200, 2), (200, 2)]


def make_journal(body, data, size, *, complete=True):
    """Write the journal of an answer that comes in pieces of one size; return its path."""
    made = []

    def open_journal(run):
        made.append(Journal(run, execution="e1", cell="c1"))
        return made[0]

    request = Request(provider="openai", path="/chat/completions", body=Body("json", body))
    headers = {"authorization": f"Bearer {KEY}"}
    journal = CallJournal(request, headers)
    journal.open({}, open_journal)
    for start in range(0, len(data), size):
        journal.receive(200, {}, data[start : start + size])
    if complete:
        answer = Body.read(data, "text/event-stream")
        journal.end(Exchange(request=request, response=Response(body=answer)))
    made[0].close()
    return made[0].path


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("complete", [True, False])
def test_no_key_or_home_folder_is_in_a_journal_and_the_folder_comes_back(
    size, complete, monkeypatch
):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", "/home/annika"))
    text = f"Look:\n/home/annika/data.csv or /home/anna. {KEY} it is."
    words = [text[n : n + 5] for n in range(0, len(text), 5)]
    body = {"messages": [{"role": "user", "content": f"Read /home/annika/x with {KEY}"}]}
    path = make_journal(body, sse(*chat_chunks(words)), size, complete=complete)
    written = path.read_text()
    assert "annika" not in written
    assert "Ab3" not in written
    log = RecoverableRun.recover(path)
    assert log.of("user")[0].content == "Read /home/annika/x with [redacted header authorization]"
    assert text_of(log) == text.replace(KEY, "[redacted header authorization]")
    assert log[-1].status == ("ok" if complete else "interrupted")


def test_a_call_that_no_decoder_reads_has_a_log_with_an_end_and_no_journal():
    request = Request(provider="openai", path="/embeddings", body=Body("json", {"input": "hi"}))
    journal = CallJournal(request, {})
    journal.open({}, lambda run: pytest.fail("a journal is opened"))
    journal.receive(200, {}, b'{"data": []}')
    journal.end(Exchange(request=request, response=Response(body=Body("json", {"data": []}))))
    assert journal.log[-1].status == "ok"


def test_a_journal_has_an_answer_as_far_as_it_came():
    data = sse(*chat_chunks(WORDS))
    path = make_journal({}, data[: len(data) // 2], 100, complete=False)
    assert len(text_of(RecoverableRun.recover(path))) > len("".join(WORDS)) // 3
    assert any(event.type == "delta" for event in read_journal(path))


def test_calls_of_one_execution_do_not_supersede_each_other():
    for complete in (False, True):
        make_journal({}, sse(*chat_chunks(WORDS)), 1 << 20, complete=complete)
        time.sleep(0.002)
    lost = find_lost_runs(NotebookFile(), "", answered={})
    assert not lost.superseded


def test_a_text_that_looks_like_a_hidden_one_comes_back(tmp_path):
    path = make_journal({"messages": [{"content": f"{Home.SIGN}~ {Home.SIGN}"}]}, b"", 1)
    assert RecoverableRun.recover(path).of("user")[0].content == f"{Home.SIGN}~ {Home.SIGN}"
