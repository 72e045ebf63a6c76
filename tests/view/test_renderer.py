"""When the renderer paints, how many messages it sends, and that it never disturbs the run.

No test waits.
"""

from __future__ import annotations

import threading

import pytest

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.view.renderer import MESSAGES, Budget, Renderer
from agent_nb.view.state.fold import RunView


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Painter:
    """Counts paints; each takes `cost` seconds and `messages`."""

    def __init__(self, clock: Clock, *, cost: float = 0.0, messages: int = 1) -> None:
        self.clock, self.cost, self.messages = clock, cost, messages
        self.paints: list[tuple[float, int, str]] = []

    def paint(self, view: RunView, now: float | None) -> int:
        self.paints.append((self.clock.now, view.events, view.status))
        self.clock.now += self.cost
        return self.messages


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make(clock: Clock, painter: object, **options: object) -> Renderer:
    renderer = Renderer(EventLog(), painter, clock=clock, wall=clock, budget=Budget(), **options)  # type: ignore[arg-type]
    renderer.subscribe()
    renderer.view.apply(e.RunStart(model="m"))
    return renderer


def drive(
    renderer: Renderer,
    clock: Clock,
    seconds: float,
    event: e.Event | None = None,
    every: float = 0.001,
) -> None:
    """Let time pass in small steps, with an event in each."""
    end = clock.now + seconds
    while clock.now < end:
        if event is not None:
            renderer.push(event)
        renderer.step()
        clock.now += every


def test_the_first_event_after_a_pause_is_painted_at_once(clock):
    painter = Painter(clock)
    renderer = make(clock, painter)
    drive(renderer, clock, 0.5)
    before = len(painter.paints)
    renderer.push(e.Delta(of="respond", block="r", text="x"))
    renderer.step()
    assert len(painter.paints) == before + 1


def test_a_press_while_the_painter_is_asked_whether_it_moves_is_painted(clock):
    class Pressed(Painter):
        @property
        def moving(self) -> bool:
            if len(self.paints) == 1:
                renderer.nudge()
            return False

    painter = Pressed(clock)
    renderer = make(clock, painter)
    renderer.push(e.Respond(content="x"))
    renderer.step()
    renderer.step()
    assert len(painter.paints) == 2


def test_a_stream_of_events_is_painted_at_the_frame_rate(clock):
    painter = Painter(clock)
    renderer = make(clock, painter, hz=10)
    drive(renderer, clock, 2.0, e.Delta(of="respond", block="r", text="x"))
    assert 18 <= len(painter.paints) <= 22


def test_ten_thousand_progress_events_a_second_stay_within_the_budget(clock):
    painter = Painter(clock, messages=25)
    renderer = make(clock, painter)
    drive(renderer, clock, 5.0, e.Progress(call_id="k", text="line\n"), every=0.0001)
    assert len(painter.paints) * 25 <= MESSAGES * 5.2 + 25


def test_renderers_share_one_budget(clock):
    budget = Budget()
    painters = [Painter(clock, messages=20) for _ in range(4)]
    renderers = [Renderer(EventLog(), p, clock=clock, wall=clock, budget=budget) for p in painters]
    end = clock.now + 4
    while clock.now < end:
        for renderer in renderers:
            renderer.push(e.Delta(of="respond", block="r", text="x"))
            renderer.step()
        clock.now += 0.01
    assert sum(len(p.paints) for p in painters) * 20 <= MESSAGES * 4 + 4 * 20 + 20


@pytest.mark.parametrize(
    "event", [e.Approval(call_id="k"), e.Error(code="x"), e.Interrupt(), e.End()]
)
def test_urgent_events_are_painted_at_once(clock, event):
    painter = Painter(clock, cost=0.05)
    renderer = make(clock, painter)
    renderer.push(e.Delta(of="respond", block="r", text="x"))
    renderer.step()
    before = len(painter.paints)
    renderer.push(event)
    renderer.step()
    assert len(painter.paints) == before + 1


def test_a_slow_painter_gets_a_quarter_of_the_time(clock):
    painter = Painter(clock, cost=0.2)
    renderer = make(clock, painter)
    drive(renderer, clock, 8.0, e.Delta(of="respond", block="r", text="x"))
    assert 8 <= len(painter.paints) <= 11


def test_without_events_only_the_seconds_are_painted(clock):
    painter = Painter(clock)
    renderer = make(clock, painter)
    drive(renderer, clock, 5.0)
    assert 4 <= len(painter.paints) <= 6


def test_nothing_is_painted_after_the_end(clock):
    painter = Painter(clock)
    renderer = make(clock, painter)
    renderer.push(e.End())
    drive(renderer, clock, 3.0)
    assert [status for _, _, status in painter.paints if status == "ok"] == ["ok"]


@pytest.mark.parametrize(
    "event", [e.Approval(call_id="k"), e.Error(code="x"), e.Interrupt(), e.End()]
)
def test_an_unwatched_view_is_first_painted_after_a_second_even_if_urgent(clock, event):
    painter = Painter(clock)
    renderer = make(clock, painter, seen=False)
    renderer.push(event)
    drive(renderer, clock, 0.9)
    assert not painter.paints
    drive(renderer, clock, 1.0, e.Delta(of="respond", block="r", text="x"))
    assert len(painter.paints) == 1


def test_stop_paints_the_last_state(clock):
    painter = Painter(clock)
    renderer = make(clock, painter)
    renderer.step()
    for _ in range(100):
        renderer.push(e.Progress(call_id="k", text="x"))
    renderer.stop()
    assert painter.paints[-1][1] == 101


def test_after_stop_the_renderer_is_detached_from_the_log(clock):
    log, painter = EventLog(), Painter(clock)
    renderer = Renderer(log, painter, clock=clock, wall=clock)
    renderer.subscribe()
    renderer.stop()
    log.append(e.User(content="x"))
    renderer.step()
    assert renderer.view.events == 0


class Broken:
    def __init__(self, times: int = 1_000_000) -> None:
        self.left, self.calls = times, 0

    def paint(self, view: RunView, now: float | None) -> int:
        self.calls += 1
        self.left -= 1
        if self.left >= 0:
            raise RuntimeError("the front end is gone")
        return 1


def test_a_painter_that_fails_is_given_up_and_nothing_reaches_the_log(clock):
    painter = Broken()
    renderer = make(clock, painter)
    log = renderer._log
    for _ in range(10):
        log.append(e.Error(code="x"))
        renderer.step()
    renderer.stop()
    assert painter.calls == 3
    assert str(renderer.fault) == "the front end is gone"
    assert (len(log), log.faults) == (10, [])


def test_a_painter_that_recovers_is_kept(clock):
    painter = Broken(times=2)
    renderer = make(clock, painter)
    for _ in range(10):
        renderer.push(e.Error(code="x"))
        renderer.step()
    assert painter.calls == 10


def test_on_its_thread_every_event_ends_up_painted():
    painted = threading.Event()

    class Last:
        def paint(self, view: RunView, now: float | None) -> int:
            if view.status == "ok":
                painted.set()
            return 1

    log = EventLog()
    renderer = Renderer(log, Last())
    renderer.start()
    for _ in range(1000):
        log.append(e.Delta(of="respond", block="r", text="x"))
    log.append(e.Respond(content="x" * 1000, block="r"))
    log.append(e.End())
    assert painted.wait(20)
    renderer.stop()
    assert str(renderer.view.cards[0].text) == "x" * 1000


def test_a_late_renderer_gets_the_events_so_far(clock, rich):
    painter = Painter(clock)
    renderer = Renderer(rich.log, painter, clock=clock, wall=clock)
    renderer.subscribe()
    renderer.stop()
    assert painter.paints[-1][1:] == (len(rich.log), "ok")


def test_the_renderer_has_caught_up_when_every_event_is_painted(clock):
    renderer = make(clock, Painter(clock))
    drive(renderer, clock, 0.5)
    assert renderer.caught_up
    renderer.push(e.Approval(call_id="k"))
    assert not renderer.caught_up
    renderer.step()
    assert renderer.caught_up


def test_the_renderer_has_not_caught_up_while_it_paints(clock):
    seen = []
    painter = Painter(clock)
    renderer = make(clock, painter)
    painter.paint = lambda view, now: seen.append(renderer.caught_up) or 1
    drive(renderer, clock, 0.01, e.Approval(call_id="k"))
    assert not any(seen)


def test_pieces_of_one_text_fold_into_one_delta_with_the_first_time(clock):
    painter = Painter(clock)
    renderer = make(clock, painter)
    renderer.step()
    applied = []
    whole = renderer.view.apply
    renderer.view.apply = lambda event: (applied.append(event), whole(event))  # type: ignore[method-assign,func-returns-value]
    for number, (block, text) in enumerate(
        [("a", "One "), ("a", "two "), ("b", "Other"), ("a", "three")]
    ):
        renderer.push(e.Delta(block=block, of="respond", text=text, ts=float(number)))
    renderer.push(e.Delta(of="status", text="loading"))
    renderer.push(e.Delta(of="status", text="loaded"))
    renderer.step()
    assert [(d.block, d.text, d.ts) for d in applied] == [
        ("a", "One two ", 0.0),
        ("b", "Other", 2.0),
        ("a", "three", 3.0),
        ("", "loading", 0.0),
        ("", "loaded", 0.0),
    ]


def test_events_that_arrive_during_a_fold_do_not_prevent_the_paint(clock):
    painter = Painter(clock)
    renderer = make(clock, painter)
    whole = renderer.view.apply

    def flooded(event: e.Event) -> None:
        renderer.push(e.User(content="more"))
        whole(event)

    renderer.view.apply = flooded  # type: ignore[method-assign]
    renderer.push(e.User(content="first"))
    renderer.step()
    assert painter.paints
    assert not renderer.caught_up


def test_an_approval_that_arrives_during_a_fold_is_painted_at_once(clock):
    painter = Painter(clock, cost=0.05)
    renderer = make(clock, painter)
    whole = renderer.view.apply

    def asking(event: e.Event) -> None:
        whole(event)
        if isinstance(event, e.User):
            renderer.push(e.Approval(call_id="k"))

    renderer.view.apply = asking  # type: ignore[method-assign]
    renderer.push(e.User(content="first"))
    renderer.step()
    renderer.step()
    assert [events for _, events, _ in painter.paints] == [2, 3]


def test_a_painter_that_cannot_start_over_is_given_up_too(clock):
    class Stuck(Broken):
        def restart(self) -> None:
            raise RuntimeError("no widgets")

    renderer = make(clock, Stuck())
    for _ in range(5):
        renderer.follow(EventLog(), RunView())
        renderer.step()
    assert str(renderer.fault) == "no widgets"
    assert renderer._painter.calls == 1


def test_a_painter_that_does_not_say_whether_it_moves_has_failed(clock):
    class Unsure(Painter):
        @property
        def moving(self) -> bool:
            raise RuntimeError("no widgets")

    painter = Unsure(clock)
    renderer = make(clock, painter)
    drive(renderer, clock, 2.0, e.User(content="x"))
    assert len(painter.paints) == 3


def test_a_press_in_an_unwatched_view_waits_for_its_frame(clock):
    painter = Painter(clock)
    renderer = make(clock, painter, seen=False)
    renderer.nudge()
    renderer.step()
    assert not painter.paints
    drive(renderer, clock, 1.1)
    assert len(painter.paints) == 1
