"""What a thread inherits, and what becomes of `threading.Thread.start`."""

from __future__ import annotations

import functools
import threading
from typing import Any

import pytest

from agent_nb.host import inherited
from agent_nb.host.inherited import Inherited


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what other tests left open."""
    monkeypatch.setattr(inherited, "_holds", {})
    monkeypatch.setattr(threading.Thread, "start", plain)


def _below(start: Any) -> Any:
    return getattr(start, "agent_nb_below", start)


plain = _below(threading.Thread.start)


def replace_start() -> Any:
    """Put a `start` of other code over the one in place; return it."""
    below: Any = threading.Thread.start

    def theirs(thread: threading.Thread) -> None:
        below(thread)

    threading.Thread.start = theirs  # type: ignore[method-assign, assignment]
    return theirs


def in_thread(variable: Inherited[str]) -> str | None:
    seen: list[str | None] = []
    thread = threading.Thread(target=lambda: seen.append(variable.get()))
    thread.start()
    thread.join()
    return seen[0]


def test_a_thread_has_the_value_of_its_starter() -> None:
    variable: Inherited[str] = Inherited("one")
    end = variable.reach_threads()
    assert in_thread(variable) is None
    token = variable.set("here")
    assert in_thread(variable) == "here"
    variable.reset(token)
    assert (variable.get(), in_thread(variable)) == (None, None)
    end()


def test_a_thread_keeps_its_value_when_the_starter_sets_another() -> None:
    variable: Inherited[str] = Inherited("one")
    end = variable.reach_threads()
    variable.set("first")
    go = threading.Event()
    seen: list[str | None] = []

    def work() -> None:
        go.wait(20)
        seen.append(variable.get())

    thread = threading.Thread(target=work)
    thread.start()
    variable.set("second")
    go.set()
    thread.join()
    assert seen == ["first"]
    end()


def test_a_thread_keeps_its_value_when_it_cannot_be_started_again() -> None:
    variable: Inherited[str] = Inherited("one")
    end = variable.reach_threads()
    variable.set("first")
    go = threading.Event()
    seen: list[str | None] = []
    thread = threading.Thread(target=lambda: go.wait(20) and seen.append(variable.get()))
    thread.start()
    variable.set("second")
    with pytest.raises(RuntimeError, match="once"):
        thread.start()
    go.set()
    thread.join()
    assert seen == ["first"]
    end()


@pytest.mark.parametrize("first_ends_first", [True, False])
def test_one_variable_ends_and_the_other_still_reaches_threads(first_ends_first: bool) -> None:
    one: Inherited[str] = Inherited("one")
    other: Inherited[str] = Inherited("other")
    ends = {one: one.reach_threads(), other: other.reach_threads()}
    one.set("a")
    other.set("b")
    ended, kept = (one, other) if first_ends_first else (other, one)
    ends[ended]()
    ends[ended]()
    assert in_thread(ended) is None
    assert in_thread(kept) == kept.get()
    ends[kept]()
    assert threading.Thread.start is plain


def test_a_replacement_of_other_code_stays_and_ours_stays_below_it() -> None:
    variable: Inherited[str] = Inherited("one")
    end = variable.reach_threads()
    theirs = replace_start()
    variable.set("here")
    again = variable.reach_threads()
    assert in_thread(variable) == "here"
    end()
    again()
    assert threading.Thread.start is theirs
    assert in_thread(variable) is None


def test_a_wrapper_with_copies_of_our_attributes_stays() -> None:
    variable: Inherited[str] = Inherited("one")
    end, ours = variable.reach_threads(), threading.Thread.start

    @functools.wraps(ours)
    def theirs(thread: threading.Thread) -> None:
        ours(thread)

    threading.Thread.start = theirs  # type: ignore[method-assign]
    end()
    assert threading.Thread.start is theirs
    again = variable.reach_threads()
    variable.set("here")
    assert in_thread(variable) == "here"
    again()
    assert threading.Thread.start is theirs


def test_other_code_that_puts_back_an_older_start_of_ours_does_no_harm() -> None:
    variable: Inherited[str] = Inherited("one")
    end, ours = variable.reach_threads(), threading.Thread.start
    replace_start()
    again = variable.reach_threads()
    threading.Thread.start = ours  # type: ignore[method-assign]
    variable.set("here")
    third = variable.reach_threads()
    assert in_thread(variable) == "here"
    for each in (end, again, third):
        each()
    assert threading.Thread.start is plain
