"""Open views: published once, replaced by the static bundle, always closed."""

from __future__ import annotations

from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.view.bundle import make_bundle
from agent_nb.view.live import LiveView, ViewOptions
from agent_nb.wire.charts import WIDGET


class Front:
    """A front end: what it was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[dict[str, Any], dict[str, Any], str, bool]] = []

    def __call__(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any],
        transient: dict[str, Any],
        update: bool,
    ) -> None:
        self.sent.append((data, metadata, transient["display_id"], update))


@pytest.fixture
def front() -> Front:
    return Front()


def replayed(view: LiveView, seen: list[e.Event], log: EventLog) -> None:
    for event in seen:
        if type(event) is not e.Delta:
            log.append(event)
    view.close(make_bundle(log), {"agent_nb": {"run": log.run}})


@pytest.mark.parametrize("kind", ["widgets", "html"])
def test_a_closed_view_is_the_static_bundle_in_the_same_display(front, rich, kind):
    log = EventLog()
    view = LiveView.open(log, ViewOptions(kind=kind), publish=front)
    replayed(view, rich.seen, log)
    assert len({display for _, _, display, _ in front.sent}) == 1
    assert front.sent[0][3] is False
    data, metadata, _, update = front.sent[-1]
    assert (data, metadata, update) == (make_bundle(log), {"agent_nb": {"run": log.run}}, True)
    assert WIDGET not in data


def test_live_widgets_carry_the_static_forms_too(front):
    log = EventLog()
    view = LiveView.open(log, ViewOptions(kind="widgets"), publish=front)
    assert {WIDGET, "text/html", "text/markdown", "text/plain"} == set(front.sent[0][0])
    view.close({})


@pytest.mark.parametrize("kind", ["widgets", "html"])
def test_a_view_of_a_running_run_starts_with_the_events_so_far(front, kind):
    log = EventLog()
    log.append(e.RunStart(model="some/model"))
    log.append(e.User(content="Which prices look wrong?"))
    view = LiveView.open(log, ViewOptions(kind=kind), publish=front)
    assert "Which prices look wrong?" in front.sent[0][0]["text/html"]
    view.close({})


def test_a_saved_page_of_a_running_run_says_that_it_is_unfinished(front):
    log = EventLog()
    view = LiveView.open(log, ViewOptions(kind="html", hz=1000), publish=front)
    log.append(e.RunStart(model="m"))
    view.renderer.stop()
    assert {str(metadata) for _, metadata, _, _ in front.sent} == {
        str({"agent_nb": {"live": log.run}})
    }
    view.close({})


@pytest.mark.parametrize(
    ("journal", "said"), [(True, "%agent recover "), (False, "run the cell again")]
)
@pytest.mark.parametrize("kind", ["widgets", "html"])
def test_a_page_says_what_to_do_if_its_kernel_is_gone(front, kind, journal, said):
    log = EventLog()
    view = LiveView.open(log, ViewOptions(kind=kind, journal=journal), publish=front)
    page = front.sent[0][0]
    assert said + (log.run if journal else "") in page["text/plain"]
    assert "unfinished" in page["text/plain"]
    assert "running" not in page["text/html"]
    log.append(e.RunStart(model="m"))
    log.append(e.End(status="ok"))
    view.close(make_bundle(log))
    assert said not in front.sent[-1][0]["text/plain"]


def test_the_advice_for_a_dead_kernel_names_the_followed_run(front):
    first, second = EventLog(), EventLog()
    view = LiveView.open(first, publish=front)
    view.follow(second, journal=True)
    assert f"%agent recover {second.run}" in front.sent[-1][0]["text/plain"]
    view.close({})


def test_a_view_can_replace_a_page(front):
    view = LiveView.open(EventLog(), ViewOptions(display_id="there"), publish=front)
    assert front.sent[0][2:] == ("there", True)
    view.close({})


def test_an_unwatched_short_run_is_painted_at_its_start_and_its_end(front, rich, monkeypatch):
    monkeypatch.setattr("agent_nb.view.renderer.UNSEEN", 1 / 60)  # short: shorter than a frame
    log = EventLog()
    replayed(
        LiveView.open(log, ViewOptions(kind="html", seen=False), publish=front), rich.seen, log
    )
    assert [update for *_, update in front.sent] == [False, True]
    assert front.sent[-1][0] == make_bundle(log)


@pytest.mark.parametrize("kind", ["widgets", "html"])
def test_a_view_that_cannot_be_published_leaves_nothing_behind(kind):
    def fail(*_: Any) -> None:
        raise OSError("the front end is gone")

    log, widgets = EventLog(), set(_instances)
    with pytest.raises(OSError, match="gone"):
        LiveView.open(log, ViewOptions(kind=kind), publish=fail)
    assert not log._subscribers
    assert set(_instances) == widgets


def test_closing_twice_swaps_once(front):
    view = LiveView.open(EventLog(), ViewOptions(kind="html"), publish=front)
    view.close({"text/plain": "a"})
    count = len(front.sent)
    view.close({"text/plain": "b"})
    assert len(front.sent) == count


def test_the_static_bundle_is_published_even_if_painting_failed(front, monkeypatch, rich):
    log = EventLog()
    view = LiveView.open(log, ViewOptions(kind="widgets"), publish=front)
    monkeypatch.setattr(view._painter, "paint", lambda *_: 1 / 0)
    replayed(view, rich.seen, log)
    assert isinstance(view.renderer.fault, ZeroDivisionError)
    assert front.sent[-1][0] == make_bundle(log)
    assert log.faults == []


def test_text_streams_the_whole_run_and_publishes_nothing(front, rich):
    out: list[str] = []
    log = EventLog()
    view = LiveView.open(log, ViewOptions(kind="text"), publish=front, write=out.append)
    replayed(view, rich.seen, log)
    assert "What the prices say" in "".join(out)
    assert front.sent == []


def test_the_header_shows_the_badge(rich):
    assert (
        "replayed from 21 Nov"
        in make_bundle(rich.log, badge="replayed from 21 Nov")["text/plain"].split("\n")[0]
    )


def test_actions_can_be_a_mapping(front):
    pressed: list[str] = []
    view = LiveView.open(
        EventLog(),
        ViewOptions(kind="widgets", can_click=True),
        publish=front,
        actions={"stop": lambda: pressed.append("stop")},
    )
    view._painter.board.root.children[2].children[1].children[0].click()
    assert pressed == ["stop"]
    view.close({})
