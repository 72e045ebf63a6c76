"""Which cards are open while a run goes on, and how a card ends that is folding then."""

import pytest

from agent_nb import events as e
from agent_nb.view import nodes
from agent_nb.view.bundle import make_parts
from agent_nb.view.cards.base import Context
from agent_nb.view.draw.terminal import TextPainter
from agent_nb.view.layout import Layout
from agent_nb.view.state.fold import RunView

THOUGHT = "".join(f"Line {n} of the thought.\n\n" for n in range(5))  # 9 lines
ANSWER = "".join(f"Paragraph {n}.\n\n" for n in range(20))


def folded_to(lines):
    """Return the layout and the events of a run whose thought has folded to some lines."""
    seen = [
        e.RunStart(model="m", ts=1.0),
        e.Think(content=THOUGHT, block="t", ts=2.0),
    ]
    layout, view, now = Layout(), RunView().extend(seen), 3.0
    layout.page(view, Context(now=now))
    view.apply(e.Delta(block="r", of="respond", text=ANSWER, ts=3.0))
    while state_of(layout)[1] > lines:
        now += 1.0
        layout.page(view, Context(now=now))
    seen += [e.Respond(content=ANSWER, block="r", ts=now), e.End(ts=now)]
    return layout, view.extend(seen[-2:]), seen


def state_of(layout):
    (state,) = layout.folds.states.values()
    return state


@pytest.mark.parametrize("lines", [12, 6, 3])
def test_a_card_that_folds_at_the_end_keeps_its_height(lines):
    layout, view, seen = folded_to(lines)
    layout.page(view, Context())
    assert state_of(layout) == (True, lines)
    page = make_parts(seen, folds=layout.folds.states)[0]["text/html"]
    assert f"max-height:{lines * 1.5:g}em" in page


def test_the_last_step_of_a_fold_is_waited_for_when_the_run_ends():
    layout, view, _ = folded_to(0)
    layout.page(view, Context())
    assert state_of(layout) == (False, 0)
    assert layout.folds.moving


def draw_thought(layout, view, now, thoughts="collapse"):
    """Return the node of the only thought of a run, as the page of this moment has it."""
    page = layout.page(view, Context(now=now, thoughts=thoughts))
    (panel,) = (s.child for s in page.sections if isinstance(s.child, nodes.Panel))
    return panel.steps[-1].child


def test_a_thought_of_one_sentence_that_was_seen_growing_gives_way():
    layout, view = Layout(), RunView().extend([e.RunStart(model="m", ts=1.0)])
    view.apply(e.Delta(block="t", of="think", text="Eight values stand", ts=1.5))
    assert draw_thought(layout, view, 2.0).open
    view.apply(e.Think(content="Eight values stand out.", block="t", ts=2.0))
    assert draw_thought(layout, view, 3.0).open  # nothing below it has filled its height
    view.apply(e.Delta(block="r", of="respond", text=ANSWER, ts=3.0))
    for now in range(4, 40):
        node = draw_thought(layout, view, float(now))
    assert isinstance(node, nodes.Fold)
    assert not node.open
    view.extend([e.Respond(content=ANSWER, block="r", ts=40.0), e.End(ts=40.0)])
    assert isinstance(draw_thought(layout, view, None), nodes.Row)


@pytest.mark.parametrize("thoughts", ["collapse", "show"])
def test_a_thought_of_one_sentence_that_nobody_saw_growing_is_a_line(thoughts):
    seen = [e.RunStart(model="m"), e.Think(content="Eight values stand out.", block="t")]
    layout, view = Layout(), RunView().extend(seen)
    for now in (2.0, 3.0):
        assert isinstance(draw_thought(layout, view, now, thoughts), nodes.Row)


def test_a_thought_that_is_a_line_fills_the_height_of_one_line():
    call = e.Call(call_id="c", name="list", args={"path": "visits"}, ts=2.0)
    result = e.Result(
        call_id="c", name="list", content="notes.md  75 B\nvisitors.csv  85 B", ts=3.0
    )
    below = [e.Think(content="I have it.", block="t", ts=4.0), e.Respond(content="Two.", ts=5.0)]
    layout, view = Layout(), RunView().extend([e.RunStart(model="m", ts=1.0), call, result, *below])
    layout.page(view, Context(now=6.0))
    assert [is_open for is_open, _ in layout.folds.states.values()] == [False, True]


def test_a_thought_of_one_sentence_is_printed_whole():
    printed, view = [], RunView().extend([e.RunStart(model="m", ts=1.0)])
    view.apply(e.Think(content="Eight values stand out.", block="t", ts=2.0))
    TextPainter(printed.append).paint(view, 3.0)
    assert "Thought for 1.0 s — Eight values stand out.\n" in "".join(printed)


def test_a_thought_of_one_sentence_that_is_open_at_the_end_stays_open():
    seen = [e.RunStart(model="m"), e.Delta(block="t", of="think", text="Eight")]
    layout, view = Layout(), RunView().extend(seen)
    draw_thought(layout, view, 2.0)
    ended = [e.Think(content="Eight values stand out.", block="t"), e.End()]
    view.extend(ended)
    assert draw_thought(layout, view, None).open
    page = make_parts([*seen, *ended], folds=layout.folds.states)[0]["text/html"]
    assert "<details open" in page
