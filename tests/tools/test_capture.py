"""Whose print it is: contexts, threads with and without one, pools, and whoever holds the stream;
and that no key gets out with it.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from helpers.scripts import calling

from agent_nb import Agent, Scripted, tool
from agent_nb.tools import capture
from agent_nb.tools.capture import OutputCapture
from agent_nb.wire.redact import Redaction

KEY = "value-of-a-secret-key"
SECRETS = {"MY_KEY": KEY}
CALL = calling("say")


@pytest.fixture
def said() -> list[str]:
    return []


def test_a_print_goes_to_the_capture_and_not_to_the_stream(said: list[str], capsys: Any) -> None:
    with OutputCapture(said.append):
        print("inside", 1)
        sys.stderr.writelines(["a", "b"])
    print("after")
    assert "".join(said) == "inside 1\nab"
    assert capsys.readouterr() == ("after\n", "")


def test_stdout_and_stderr_can_be_told_apart(said: list[str]) -> None:
    errors: list[str] = []
    with OutputCapture(said.append, errors.append):
        print("out")
        print("err", file=sys.stderr)
    assert ("".join(said), "".join(errors)) == ("out\n", "err\n")


def test_through_goes_to_the_streams_too(said: list[str], capsys: Any) -> None:
    with OutputCapture(said.append, through=True):
        print("both")
    assert ("".join(said), capsys.readouterr().out) == ("both\n", "both\n")


def test_the_streams_and_threads_are_what_they_were_afterwards(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a thread that another test abandoned may still hold a capture
    monkeypatch.setattr(capture, "_open", [])
    monkeypatch.setattr(capture, "_restore", [])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    before = sys.stdout, sys.stdout.write, threading.Thread.start, ThreadPoolExecutor.submit
    with OutputCapture(said.append):
        assert sys.stdout is before[0]
        with OutputCapture(said.append):
            pass
        assert sys.stdout.write != before[1]
    assert (
        sys.stdout,
        sys.stdout.write,
        threading.Thread.start,
        ThreadPoolExecutor.submit,
    ) == before


def test_whoever_replaced_the_write_meanwhile_keeps_it(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with OutputCapture(said.append):
        ours = sys.stdout.write
        sys.stdout.write = lambda text: ours(text.upper())  # type: ignore[method-assign]
    print("after")
    assert (said, stream.getvalue()) == ([], "AFTER\n")


@pytest.mark.parametrize("stream", [None, object()])
def test_a_stream_that_cannot_be_heard_is_left_alone(
    stream: Any, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with OutputCapture(said.append):
        print("still heard")
    assert "".join(said) == "still heard\n"
    assert sys.stderr is stream


def test_a_logging_handler_that_holds_the_stream_is_heard(said: list[str], capsys: Any) -> None:
    log = logging.Logger("held")
    log.addHandler(logging.StreamHandler(sys.stderr))
    with OutputCapture(said.append):
        log.warning("careful")
    log.warning("afterwards")
    assert "".join(said) == "careful\n"
    assert capsys.readouterr().err == "afterwards\n"


def plain(function: Any) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def copied(function: Any) -> None:
    context = contextvars.copy_context()
    plain(lambda: context.run(function))


def grandchild(function: Any) -> None:
    plain(lambda: plain(function))


def new_pool(function: Any) -> None:
    with ThreadPoolExecutor() as pool:
        pool.submit(function).result()


POOL = ThreadPoolExecutor(1)


def old_pool(function: Any) -> None:
    POOL.submit(function).result()


def on_a_loop(function: Any) -> None:
    async def main() -> None:
        await asyncio.to_thread(function)
        await asyncio.get_running_loop().run_in_executor(None, function)

    asyncio.run(main())


@pytest.mark.parametrize("where", [plain, copied, grandchild, new_pool, old_pool, on_a_loop])
def test_threads_that_the_code_starts_belong_to_it(
    where: Any, said: list[str], capsys: Any
) -> None:
    POOL.submit(int).result()  # its thread is older than the capture
    with OutputCapture(said.append):
        where(lambda: print("from a thread"))
    where(lambda: print("later"))
    assert set("".join(said).splitlines()) == {"from a thread"}
    assert set(capsys.readouterr().out.splitlines()) == {"later"}


def test_a_thread_that_outlives_the_code_prints_where_it_always_did(
    said: list[str], capsys: Any
) -> None:
    go = threading.Event()

    def work() -> None:
        print("first")
        go.wait(20)
        print("second")

    with OutputCapture(said.append):
        thread = threading.Thread(target=work)
        thread.start()
        while "\n" not in "".join(said):  # `print` writes the end of a line by itself
            go.wait(0.001)
    go.set()
    thread.join()
    assert ("".join(said), capsys.readouterr().out) == ("first\n", "second\n")


def test_tasks_at_the_same_time_are_told_apart() -> None:
    said: dict[str, list[str]] = {"a": [], "b": []}

    async def work(name: str) -> None:
        with OutputCapture(said[name].append):
            for n in range(5):
                print(name, n)
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(main())
    assert {name: "".join(lines) for name, lines in said.items()} == {
        n: "".join(f"{n} {i}\n" for i in range(5)) for n in "ab"
    }


def test_what_is_said_for_another_stream_goes_to_the_capture_or_nowhere(said: list[str]) -> None:
    with OutputCapture(print, said.append):
        capture = OutputCapture.current()
        assert capture is not None
        capture.err("\r50%")
    assert OutputCapture.current() is None
    assert said == ["\r50%"]


# Where no view shows them, prints go to the streams, through the secret filter.


def printed(function: Any, capsys: Any) -> tuple[str, str]:
    """Let an agent call `function` as a tool where no view shows it; return what came out on stdout
    and stderr.
    """
    function.__name__ = "say"
    run = Agent(Scripted([CALL, "done"]), [function], secrets=SECRETS).run_sync("go")
    assert [r.status for r in run.log.of("result")] == ["ok"]
    out, err = capsys.readouterr()
    assert KEY not in out + err
    return out, err


def test_what_a_tool_prints_holds_no_key(capsys: Any) -> None:
    def say():
        print("the key is", KEY)
        print(KEY, file=sys.stderr)

    assert printed(say, capsys) == ("the key is [redacted MY_KEY]\n", "[redacted MY_KEY]\n")


def test_a_key_that_is_printed_in_pieces_is_found(capsys: Any) -> None:
    def say():
        for char in KEY:
            print(char, end="", flush=True)
        print(" and so")

    assert printed(say, capsys)[0] == "[redacted MY_KEY] and so\n"


def test_what_a_tool_printed_last_is_not_lost(capsys: Any) -> None:
    def say():
        print(f"half of it: {KEY[:5]}", end="")

    assert printed(say, capsys)[0] == f"half of it: {KEY[:5]}"


def test_a_thread_that_writes_while_the_capture_ends_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream, wrote, ended = io.StringIO(), threading.Event(), threading.Event()
    monkeypatch.setattr(sys, "stdout", stream)

    def out(text: str) -> None:
        wrote.set()
        assert ended.wait(10)

    with OutputCapture(out, through=True, redaction=Redaction(SECRETS)):
        thread = threading.Thread(target=lambda: print(f"half of it: {KEY[:5]}", end=""))
        thread.start()
        assert wrote.wait(10)
    ended.set()
    thread.join()
    assert stream.getvalue() == f"half of it: {KEY[:5]}"


def test_a_stream_that_the_code_has_closed_costs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())

    @tool(effect="none")
    def say() -> str:
        print(KEY[:5], end="")
        sys.stdout.close()
        return "done"

    before = set(capture._open)  # threads of other tests may still print
    run = Agent(Scripted([CALL, "end"]), tools=[say], secrets=SECRETS).run_sync("go")
    assert run.log.of("result")[0].content == "done"
    assert set(capture._open) <= before


@pytest.mark.parametrize(
    "kind", ["coroutine", "asynchronous generator", "generator", "main thread"]
)
def test_every_kind_of_tool_prints_without_keys(kind: str, capsys: Any) -> None:
    async def coroutine():
        await asyncio.sleep(0)
        print(KEY)

    async def stepped():
        print(KEY)
        yield "x"

    def generator():
        yield "x"
        print(KEY)

    @tool(thread="main")
    def main():
        print(KEY)

    functions = {"coroutine": coroutine, "asynchronous generator": stepped, "generator": generator}
    if kind == "main thread":
        run = Agent(
            Scripted([calling("main"), "done"]),
            [main],
            secrets=SECRETS,
        ).run_sync("go")
        assert run.log.of("result")[0].status == "ok"
        assert capsys.readouterr().out == "[redacted MY_KEY]\n"
    else:
        assert printed(functions[kind], capsys)[0] == "[redacted MY_KEY]\n"


def test_threads_and_log_handlers_of_a_tool_write_without_keys(capsys: Any) -> None:
    handler = logging.StreamHandler(sys.stderr)  # holds the stream that was there before

    def say():
        thread = threading.Thread(target=lambda: print("in a thread", KEY))
        thread.start()
        thread.join()
        logging.getLogger("tool").warning("logged %s", KEY)

    logging.getLogger("tool").addHandler(handler)
    try:
        assert printed(say, capsys) == (
            "in a thread [redacted MY_KEY]\n",
            "logged [redacted MY_KEY]\n",
        )
    finally:
        logging.getLogger("tool").removeHandler(handler)


def test_other_contexts_are_not_held_back_while_a_tool_prints(capsys: Any) -> None:
    go = threading.Event()
    other = threading.Thread(target=lambda: (go.wait(20), print(KEY[:3], end="")))
    other.start()
    with OutputCapture(str, through=True, redaction=Redaction(SECRETS)):
        print("v", end="")  # may be the start of a key
        go.set()
        other.join()
        assert capsys.readouterr().out == KEY[:3]
    assert capsys.readouterr().out == "v"


def test_threads_of_others_write_without_keys_while_a_tool_runs(capsys: Any) -> None:
    go = threading.Event()
    other = threading.Thread(target=lambda: (go.wait(20), print("older", KEY)))
    other.start()
    with OutputCapture(str, redaction=Redaction(SECRETS)):
        go.set()
        other.join()
    print(KEY)
    assert capsys.readouterr().out == f"older [redacted MY_KEY]\n{KEY}\n"
