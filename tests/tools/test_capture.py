"""What tools print passes a filter on its way to the streams, wherever it is printed from."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time

import pytest

from agent_nb import Agent, Scripted, tool
from agent_nb.redact import Redactor, redact_text
from agent_nb.tools.capture import captured, filtered

KEY = "value-of-a-secret-key"
SECRETS = {"MY_KEY": KEY}
CALL = '<execute>[{"name":"say","args":{}}]</execute>'


def quiet():
    return filtered(lambda: Redactor(SECRETS), lambda text: redact_text(text, SECRETS))


def said(function, capsys):
    """Let an agent call `function` as a tool; return what came out on stdout and stderr."""
    function.__name__ = "say"
    run = Agent(Scripted([CALL, "done"]), [function], secrets=SECRETS).run_sync("go")
    assert [r.status for r in run.log.of("result")] == ["ok"]
    out, err = capsys.readouterr()
    assert KEY not in out + err
    return out, err


def test_what_a_tool_prints_holds_no_key(capsys):
    def say():
        print("the key is", KEY)
        print(KEY, file=sys.stderr)

    assert said(say, capsys) == ("the key is [redacted MY_KEY]\n", "[redacted MY_KEY]\n")


def test_a_key_that_is_printed_in_pieces_is_found(capsys):
    def say():
        for char in KEY:
            print(char, end="", flush=True)
        print(" and so")

    assert said(say, capsys)[0] == "[redacted MY_KEY] and so\n"


def test_what_a_tool_printed_last_is_not_lost(capsys):
    def say():
        print(f"half of it: {KEY[:5]}", end="")

    assert said(say, capsys)[0] == f"half of it: {KEY[:5]}"


@pytest.mark.parametrize("kind", ["coroutine", "asynchronous generator", "generator", "main thread"])
def test_every_kind_of_tool_prints_without_keys(kind, capsys):
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
        run = Agent(Scripted(['<execute>[{"name":"main","args":{}}]</execute>', "done"]), [main], secrets=SECRETS).run_sync("go")
        assert run.log.of("result")[0].status == "ok"
        assert capsys.readouterr().out == "[redacted MY_KEY]\n"
    else:
        assert said(functions[kind], capsys)[0] == "[redacted MY_KEY]\n"


def test_threads_and_log_handlers_of_a_tool_write_without_keys(capsys):
    handler = logging.StreamHandler(sys.stderr)  # holds the stream that was there before

    def say():
        thread = threading.Thread(target=lambda: print("in a thread", KEY))
        thread.start()
        thread.join()
        logging.getLogger("tool").warning("logged %s", KEY)

    logging.getLogger("tool").addHandler(handler)
    try:
        assert said(say, capsys) == ("in a thread [redacted MY_KEY]\n", "logged [redacted MY_KEY]\n")
    finally:
        logging.getLogger("tool").removeHandler(handler)


def test_other_contexts_are_not_held_back_while_a_tool_prints(capsys):
    with quiet():
        print("s", end="")  # may be the start of a key
        threading.Thread(target=lambda: print("s", end="")).start()
        time.sleep(0)
    assert sorted(capsys.readouterr().out) == ["s", "s"]


def test_the_streams_are_as_before_when_the_last_tool_is_over(capsys):
    before = sys.stdout, sys.stderr, sys.stdout.write
    with quiet(), quiet():
        pass
    assert (sys.stdout, sys.stderr, sys.stdout.write) == before
    print(KEY)
    assert capsys.readouterr().out == f"{KEY}\n"


def test_what_is_captured_is_not_printed(capsys):
    taken = []
    with quiet(), captured(taken.append):
        print("x")
    assert (taken, capsys.readouterr().out) == (["x", "\n"], "")
