"""What tools print is progress of their call, wherever they run."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import pytest

from agent_nb.tools import execution
from agent_nb.tools.base import ToolContext
from agent_nb.tools.capture import OutputCapture
from agent_nb.tools.decorator import tool

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def in_a_view() -> Iterator[None]:
    """A view shows what the tools print."""
    with OutputCapture.mark_shown():
        yield


def function(word: str) -> str:
    print("in a", word)
    return "done"


async def coroutine(word: str) -> str:
    await asyncio.sleep(0)
    print("in a", word)
    return "done"


def generator(word: str) -> Iterator[float]:
    print("in a", word)
    yield 0.5
    return "done"


async def async_generator(word: str) -> AsyncIterator[Any]:
    print("in a", word)
    yield 0.5
    yield "done"


@tool(thread="main")
def on_the_main_thread(word: str) -> str:
    print("in a", word)
    return "done"


class Talking:
    def __repr__(self) -> str:
        print("in a repr")
        return "done"


def described(word: str) -> Talking:
    return Talking()


@pytest.mark.parametrize(
    "made", [function, coroutine, generator, async_generator, on_the_main_thread, described]
)
def test_a_print_is_progress_of_the_call_and_does_not_land_elsewhere(
    made: Any, run: Run, host: Any, capsys: Any
) -> None:
    outcomes, record = run([made], (made.__name__, {"word": "tool"}), host=host)
    assert outcomes[0].content == "done"
    printed = "".join(u.text for u in record.of("update") if u.printed)
    assert printed == ("in a repr\n" if made is described else "in a tool\n")
    assert capsys.readouterr() == ("", "")


def test_tools_that_run_at_the_same_time_are_told_apart(run: Run) -> None:
    meeting = threading.Barrier(2, timeout=20)

    def one(name: str) -> None:
        for n in range(20):
            print(name, n)
            meeting.wait()

    async def two(name: str) -> None:
        for n in range(20):
            print(name, n)
            await asyncio.to_thread(meeting.wait)

    _, record = run([one, two], ("one", {"name": "a"}), ("two", {"name": "b"}))
    for call_id, name in (("c1", "a"), ("c2", "b")):
        assert "".join(u.text for u in record.of("update", call_id)) == "".join(
            f"{name} {n}\n" for n in range(20)
        )


def test_stderr_is_shown_and_is_no_print(run: Run) -> None:
    def warn() -> None:
        sys.stderr.write("careful")

    _, record = run([warn], ("warn", {}))
    assert [(u.text, u.printed) for u in record.of("update")] == [("careful", False)]


def test_without_a_view_a_print_is_also_printed(run: Run, capsys: Any) -> None:
    _, record = contextvars.Context().run(run, [function], ("function", {"word": "script"}))
    assert "".join(u.text for u in record.of("update")) == "in a script\n"
    assert capsys.readouterr().out == "in a script\n"


def test_prints_come_in_order_with_what_is_reported(run: Run) -> None:
    def mixed(context: ToolContext) -> Iterator[str]:
        print("one")
        yield "two\n"
        print("three")
        context.progress("four\n")

    _, record = run([mixed], ("mixed", {}))
    assert "".join(u.text for u in record.of("update")) == "one\ntwo\nthree\nfour\n"


def test_a_flood_of_prints_is_bounded_and_says_so(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "MOST_PRINTED", 100)

    def flood() -> str:
        for _ in range(50):
            print("x" * 9)
        return "done"

    _, record = run([flood], ("flood", {}))
    said = "".join(u.text for u in record.of("update"))
    assert said.count("x") == 90
    assert said.endswith("[… no more is shown after 100 characters …]\n")


def test_a_tool_that_fails_has_said_what_it_printed(run: Run) -> None:
    def fails() -> None:
        print("before")
        raise ValueError("no")

    outcomes, record = run([fails], ("fails", {}))
    assert outcomes[0].status == "error"
    assert "".join(u.text for u in record.of("update")) == "before\n"


def cancel_at(kind: str, used: Any, kept: Any) -> None:
    """Call a tool without arguments, and cancel the call when its record `kept` has `kind`."""
    from agent_nb.tools.runner import ToolRunner
    from agent_nb.tools.running_call import Job
    from agent_nb.tools.toolset import Toolset

    toolset = Toolset.resolve([used])

    async def main() -> None:
        with anyio.move_on_after(20) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(
                    lambda: ToolRunner(toolset).run([Job("c1", toolset.names[0], {})], kept)
                )
                await kept.seen(kind)
                scope.cancel()

    anyio.run(main)


def test_a_tool_that_was_left_behind_is_not_heard_any_more(record: Any, capsys: Any) -> None:
    over, printed = threading.Event(), threading.Event()

    def stubborn() -> None:
        print("first\n", end="")  # one update
        while True:
            try:
                over.wait(20)
                print("too late")
                printed.set()
                break
            except SystemExit:
                continue

    kept = record()
    cancel_at("update", stubborn, kept)
    over.set()
    assert printed.wait(20)
    assert [outcome.status for outcome in kept.of("end")] == ["cancelled"]
    assert "".join(u.text for u in kept.of("update")) == "first\n"
    assert capsys.readouterr() == ("", "")


def test_a_print_does_not_raise_when_the_call_is_to_stop(record: Any) -> None:
    ended = threading.Event()

    def prints(context: ToolContext) -> None:
        while not context.cancelled:
            time.sleep(0.001)
        print("stopping")
        ended.set()

    cancel_at("started", prints, record())
    assert ended.wait(20)
