"""Repeated requests: one row that counts down, then says how long it took."""

from __future__ import annotations

from typing import Any

import pytest

from agent_nb import events as e
from agent_nb.view import nodes
from agent_nb.view.cards.base import Context
from agent_nb.view.cards.header import describe_phase
from agent_nb.view.draw.terminal import TextPainter
from agent_nb.view.draw.text import draw
from agent_nb.view.layout import Layout, page
from agent_nb.view.renderer import Budget, Renderer
from agent_nb.view.state.cards import RetryCard
from agent_nb.view.state.fold import RunView

WHY = "Rate limit at OpenAI (429)"
TITLE = f"↻ {WHY}"


def refused(tape: Any, number: int, pause: float, *, told: bool = True) -> None:
    """Log that request `number` was refused and that the next one comes in `pause` seconds."""
    span = {"name": "llm", "span": f"llm-{number}", "turn": 1}
    tape(e.Node(phase="enter", data={"attempt": number, "internal": True}, **span), after=0.0)
    more = {"retry_in": pause} if told else {}
    tape(
        e.Node(phase="exit", result="error: provider 429", data={"status": 0, **more}, **span),
        after=0.2,
    )
    message = f"{WHY}. Trying again in {pause:.1f} s (attempt {number + 1})."
    tape(
        e.Error(code="retry", message=message, raw='{"error": "slow down"}', retryable=True),
        after=0.0,
    )
    tape.now += pause


def asked(tape: Any, number: int) -> None:
    tape(
        e.Node(name="llm", span=f"llm-{number}", turn=1, phase="enter", data={"attempt": number}),
        after=0.0,
    )


def rows(view: RunView, now: float | None = None) -> list[str]:
    drawn = draw(page(view, Context(now=now, live=now is not None)))
    return [line.strip() for line in drawn.splitlines() if "↻" in line]


def test_a_wait_counts_down_second_by_second_without_an_event(begun):
    refused(begun, 1, 12.0)
    view, layout = RunView().extend(begun.log), Layout()
    start = begun.now - 12.0
    seen = []
    for second in range(14):
        drawn = draw(layout.page(view, Context(now=start + second, live=True)))
        seen.append(
            next(line for line in drawn.splitlines() if "↻" in line).split("   ")[-1].strip()
        )
    assert seen == [
        *(f"trying again in {n} s · try 2" for n in range(12, 0, -1)),
        "trying again · try 2",
        "trying again · try 2",
    ]
    assert describe_phase(view) == ("waiting to try again", "run")


def test_only_the_row_that_counts_is_drawn_again(begun):
    begun.think("x", "t")
    refused(begun, 1, 12.0)
    view, layout = RunView().extend(begun.log), Layout()

    def steps(now: float) -> list[nodes.Node]:
        (panel,) = [
            s.child
            for s in layout.page(view, Context(now=now, live=True)).sections
            if isinstance(s.child, nodes.Panel)
        ]
        return [step.child for step in panel.steps]

    first, soon, later = steps(begun.now - 11.9), steps(begun.now - 11.8), steps(begun.now - 10.5)
    assert [a is b for a, b in zip(first, soon, strict=True)] == [True, True]
    assert [a is b for a, b in zip(first, later, strict=True)] == [True, False]


def test_the_renderer_paints_once_a_second_while_it_waits(begun):
    refused(begun, 1, 5.0)
    begun.now -= 5.0
    painted: list[float | None] = []
    clock = [0.0]

    class Painter:
        def restart(self) -> None: ...

        def paint(self, view: RunView, now: float | None) -> int:
            painted.append(now)
            return 1

    renderer = Renderer(
        begun.log,
        Painter(),
        budget=Budget(),
        clock=lambda: clock[0],
        wall=lambda: begun.now + clock[0],
    )
    renderer.subscribe()
    for _ in range(40):
        renderer.step()
        clock[0] += 0.1
    assert len(painted) in (4, 5)


def test_several_tries_are_one_row_with_the_sum_of_their_waits(begun):
    refused(begun, 1, 2.0)
    refused(begun, 2, 10.0)
    view = RunView().extend(begun.log)
    assert rows(view, begun.now - 4.0) == [f"{TITLE}   trying again in 4 s · try 3"]
    asked(begun, 3)
    view = RunView().extend(begun.log)
    assert rows(view, begun.now) == [f"{TITLE}   trying again · try 3"]
    assert view.retries.waiting is None
    begun.answer("Fine.")
    begun(e.End())
    ended = RunView().extend(begun.log)
    assert [c.kind for c in ended.cards] == ["user", "retry", "respond"]
    assert rows(ended) == [f"{TITLE}   waited 12 s, 3 tries"]


def test_the_last_reply_of_the_server_can_be_opened(begun):
    refused(begun, 1, 2.0)
    asked(begun, 2)
    begun.answer("Fine.")
    (panel,) = [
        s.child
        for s in page(RunView().extend(begun.log)).sections
        if isinstance(s.child, nodes.Panel)
    ]
    fold = panel.steps[0].child
    assert isinstance(fold, nodes.Fold)
    assert not fold.open
    assert fold.body[0].text == '{"error": "slow down"}'


def test_a_stop_during_a_wait_counts_the_time_waited(begun):
    refused(begun, 1, 2.0)
    refused(begun, 2, 10.0)
    begun.now -= 7.0
    begun(e.Interrupt(reason="user"), e.End(status="interrupted"), after=0.0)
    assert rows(RunView().extend(begun.log)) == [f"{TITLE}   waited 5.0 s, 2 tries"]


def test_a_request_that_is_given_up_leaves_its_row_and_the_error(begun):
    refused(begun, 1, 2.0)
    asked(begun, 2)
    begun(e.Error(code="provider", message=f"{WHY}: slow down."), e.End(status="error"))
    view = RunView().extend(begun.log)
    assert [c.kind for c in view.cards] == ["user", "retry", "error"]
    assert rows(view)[0] == f"{TITLE}   waited 2.0 s, 2 tries"


def test_another_request_that_fails_later_gets_another_row(begun):
    refused(begun, 1, 2.0)
    asked(begun, 2)
    begun.tool("k", "read", {})
    refused(begun, 3, 3.0)
    asked(begun, 4)
    begun.answer("Fine.")
    assert [row.split("   ")[-1] for row in rows(RunView().extend(begun.log))] == [
        "waited 2.0 s, 2 tries",
        "waited 3.0 s, 2 tries",
    ]


def test_a_record_without_announced_waits_is_still_readable(begun):
    refused(begun, 1, 2.0, told=False)
    assert rows(RunView().extend(begun.log), begun.now - 1.0) == [f"{TITLE}   trying again · try 2"]
    asked(begun, 2)
    begun.answer("Fine.")
    assert rows(RunView().extend(begun.log)) == [f"{TITLE}   waited 2.0 s, 2 tries"]


@pytest.mark.parametrize("told", [-1, 1e99, "12", None, [3], float("nan"), True])
def test_an_implausible_wait_is_unknown(begun, told):
    span = {"name": "llm", "span": "llm-1", "turn": 1}
    begun(e.Node(phase="exit", data={"retry_in": told}, **span), e.Error(code="retry", message="x"))
    view = RunView().extend(begun.log)
    (card,) = [c for c in view.cards if isinstance(c, RetryCard)]
    assert card.failures[0][1] in (0.0, 1.0)
    assert rows(view, begun.now + 2)


def test_deltas_of_the_answer_end_the_row_without_changing_its_figures(begun):
    refused(begun, 1, 2.0)
    asked(begun, 2)
    begun.stream("r1", "respond", "Fine.")
    view = RunView().extend(begun.seen)
    assert rows(view, begun.now) == [f"{TITLE}   waited 2.0 s, 2 tries"]


def test_a_sub_agent_has_its_own_row_inside(begun):
    begun.call("s1", "helper", {})
    begun(e.Node(name="helper", phase="enter", span="n1", data={"call_id": "s1"}))
    begun(e.Node(name="llm", phase="enter", span="n1m", parent="n1"))
    begun(e.Node(name="llm", phase="exit", span="n1m", parent="n1", data={"retry_in": 3.0}))
    begun(e.Error(code="retry", message=f"{WHY}. Trying again in 3.0 s (attempt 2).", span="n1"))
    view = RunView().extend(begun.log)
    assert view.retries.waiting is None
    assert view._views["n1"].retries.waiting is not None
    assert rows(view, begun.now) == [f"{TITLE}   trying again in 3 s · try 2"]


def test_a_terminal_prints_a_line_for_each_wait_and_one_at_the_end(begun):
    refused(begun, 1, 2.0)
    refused(begun, 2, 10.0)
    asked(begun, 3)
    begun.answer("Fine.")
    begun(e.End())
    for every in (1, 3, 1000):
        printed: list[str] = []
        view, painter = RunView(), TextPainter(printed.append)
        for at, event in enumerate(begun.seen, 1):
            view.apply(event)
            if at % every == 0:
                painter.paint(view, begun.now)
        painter.paint(view, None)
        told = [line for line in "".join(printed).splitlines() if "↻" in line]
        assert told == [
            f"{TITLE}   trying again in 2 s · try 2",
            f"{TITLE}   trying again in 10 s · try 3",
            f"{TITLE}   waited 12 s, 3 tries",
        ]
