"""The live view: few widgets, few messages, widgets that stay, presses that arrive."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import ipywidgets as w
import pytest
from ipywidgets.widgets.widget_bool import ToggleButtonStyle
from ipywidgets.widgets.widget_string import HTMLStyle

from agent_nb import events as e
from agent_nb.events.event_json import encode_event
from agent_nb.view import nodes, theme
from agent_nb.view.folds import MOST_LINES
from agent_nb.view.markdown.stream import render
from agent_nb.view.markdown.stylesheet import compact, css
from agent_nb.view.painters import WidgetPainter
from agent_nb.view.state.fold import RunView
from agent_nb.view.state.text import Text
from agent_nb.view.views import GONE
from agent_nb.view.widgets import prose as prose_slot
from agent_nb.view.widgets import root, slots, steps
from agent_nb.view.widgets.board import SLOTS, style_sheet
from agent_nb.view.widgets.keys import ACTION, FORM, KEYS
from agent_nb.view.widgets.kit import Kit


class Acts(list[tuple[str, Any]]):
    def __call__(self, action: str, payload: Any) -> None:
        self.append((action, payload))


@pytest.fixture
def acts() -> Acts:
    return Acts()


@pytest.fixture
def painter(acts):
    made = WidgetPainter(acts, "collapse", lambda: True)
    yield made
    made.close()


def below(widget: Any) -> list[Any]:
    """Return a widget and all below it."""
    return [widget, *(x for child in getattr(widget, "children", ()) for x in below(child))]


def find(painter: WidgetPainter, kind: type) -> list[Any]:
    return [x for x in below(painter.board.root) if type(x) is kind]


def text(painter: WidgetPainter) -> str:
    return "\n".join(
        x.value for x in below(painter.board.root) if isinstance(x, w.HTML | w.HTMLMath)
    )


def inner(prose: Any) -> str:
    """Return the HTML of a growing text, whatever widgets it was put into."""
    return "".join(x.value for x in prose.children)


def play(painter: WidgetPainter, seen: list[e.Event], *, every: int = 3) -> tuple[RunView, int]:
    view, sent = RunView(), 0
    for number, event in enumerate(seen):
        view.apply(event)
        if number % every == 0:
            sent += painter.paint(view, event.ts)
    return view, sent + painter.paint(view, None)


def test_every_step_of_a_rich_run_can_be_painted(painter, rich):
    play(painter, rich.seen, every=1)
    assert "What the prices say" in text(painter)


def test_a_style_is_made_with_its_first_widget_and_closed_with_all(acts, rich):
    painter = WidgetPainter(acts, "collapse", lambda: True)
    painter.paint(RunView(), None)
    styles = painter.board.kit._styles
    assert list(styles) == [HTMLStyle]
    play(painter, rich.seen)
    assert ToggleButtonStyle in styles
    painter.close()
    assert {style.comm for style in styles.values()} == {None}


def test_a_button_is_disabled_until_its_presses_are_heard(painter, acts, rich, monkeypatch):
    announced, whole = [], w.Button.open
    monkeypatch.setattr(
        w.Button, "open", lambda button: (announced.append(button.disabled), whole(button))
    )
    play(painter, rich.seen[:2])
    (stop,) = find(painter, w.Button)
    stop.click()
    assert announced == [True]
    assert not stop.disabled
    assert acts


def test_the_end_of_a_run_leaves_the_widgets_before_its_footer_as_they_are(painter, begun):
    begun.answer("It is *done*.")
    view, _ = play(painter, begun.seen)
    before = painter.board.root.children
    view.apply(e.End(ts=9.0))
    painter.paint(view, None)
    after = painter.board.root.children
    assert not find(painter, w.Button)
    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


def test_painting_often_or_once_ends_in_the_same_widgets(rich, acts):
    shapes = []
    for every in (1, 7, 10_000):
        painter = WidgetPainter(acts, "collapse", lambda: True)
        play(painter, rich.seen, every=every)
        prose = [x for x in below(painter.board.root) if "agent-nb-prose" in x._dom_classes]
        parts = {id(child) for x in prose for child in x.children}
        others = [
            x
            for x in below(painter.board.root)
            if isinstance(x, w.HTML | w.Button) and id(x) not in parts
        ]
        shapes.append([[inner(x) for x in prose], [(type(x).__name__, x.value) for x in others]])
        painter.close()
    assert shapes[0] == shapes[1] == shapes[2]


def test_a_thought_is_open_until_what_follows_has_filled_its_height(painter, begun):
    view = RunView().extend(begun.seen)
    view.apply(e.Delta(block="t", of="think", text="Compare prices."))
    painter.paint(view, 0.0)
    (thought,) = find(painter, w.ToggleButton)
    assert (thought.value, thought.description) == (True, "Thinking…")
    view.apply(e.Think(block="t", content="Compare prices. Then more.", ts=view.last + 1.8))
    painter.paint(view, 1.0)
    assert find(painter, w.ToggleButton) == [thought]
    assert (thought.value, thought.description) == (True, "Thought for 1.8 s — Compare prices")
    view.apply(e.Delta(block="r", of="respond", text="One line.\n\nAnd another."))
    for second in range(2, 2 + MOST_LINES):
        painter.paint(view, float(second))
    assert not thought.value


@pytest.mark.parametrize("opened", [True, False])
def test_a_thought_stays_as_its_reader_left_it(painter, begun, opened):
    begun.think("One. Two.", "t")
    begun(e.Respond(content="x" if opened else "x\n\ny\n\nz"))
    view = RunView().extend(begun.seen)
    painter.paint(view, 0.0)
    (thought,) = find(painter, w.ToggleButton)
    thought.value = not thought.value
    left = thought.value
    view.apply(e.Respond(content="x\n\n" * 20))
    painter.paint(view, 1.0)
    assert thought.value is left
    (key,) = painter.folds(by_reader=True)
    assert painter.folds(by_reader=False)[key] == (left, 0)


@pytest.mark.parametrize(
    ("thoughts", "shown"), [("show", [True]), ("collapse", [False]), ("hide", [])]
)
def test_thoughts_are_shown_as_asked(acts, begun, thoughts, shown):
    begun.think("One. Two.", "t")
    begun(e.Respond(content="An answer.\n\nOf some lines."))
    painter = WidgetPainter(acts, thoughts, lambda: True)
    painter.paint(RunView().extend(begun.seen), None)
    assert [x.value for x in find(painter, w.ToggleButton)] == shown
    painter.close()


def test_a_bar_is_moved_not_replaced(painter, begun):
    begun.call("k", "scan", {})
    begun(e.Started(call_id="k"), e.Progress(call_id="k", fraction=0.25))
    view = RunView().extend(begun.seen)
    painter.paint(view, 0.0)
    (bar,) = find(painter, w.FloatProgress)
    view.apply(e.Progress(call_id="k", fraction=0.5, message="half"))
    sent = painter.paint(view, 0.0)
    assert find(painter, w.FloatProgress) == [bar]
    assert bar.value == 0.5
    assert "50 % · half" in text(painter)
    assert sent <= 3


def test_a_finished_call_is_a_line_and_one_widget_below_it(painter, begun):
    begun.tool("k", "scan", {"a": 1}, content="x\ny")
    painter.paint(RunView().extend(begun.seen), None)
    fold = next(x for x in below(painter.board.root) if "agent-nb-fold" in x._dom_classes)
    assert [type(x) for x in below(fold)] == [
        w.VBox,
        w.ToggleButton,
        w.HTML,
        w.VBox,
        w.VBox,
        w.HTML,
    ]


def test_a_paint_without_change_sends_nothing(painter, rich):
    view, _ = play(painter, rich.seen)
    assert painter.paint(view, None) == 0


LONG = "".join(
    f"## Part {i}\n\nSome **words** and `code` of part {i}, again and again and again.\n\n- a\n- b\n\n"
    for i in range(900)
)


@pytest.fixture
def long_answer(begun) -> list[e.Event]:
    """An answer of about 80 KB in 4000 pieces."""
    begun.stream("r", "respond", LONG, size=20)
    begun(e.Respond(content=LONG, block="r"), e.End())
    return begun.seen


def test_a_long_answer_takes_few_widgets_and_few_bytes(painter, long_answer):
    sent = 0
    view = RunView()
    sizes: dict[int, str] = {}
    for number, event in enumerate(long_answer):
        view.apply(event)
        if number % 30 == 0 or event is long_answer[-1]:
            painter.paint(view, event.ts)
            now = {id(x): x.value for x in below(painter.board.root) if isinstance(x, w.HTML)}
            sent += sum(len(v) for k, v in now.items() if sizes.get(k) != v)
            sizes = now
    assert len(below(painter.board.root)) <= 40
    assert sent <= 5.5 * len(LONG)


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_a_text_of_any_length_uses_few_widgets(painter, begun, monkeypatch, every):
    monkeypatch.setattr(prose_slot, "RECENT", 200)  # as if the text were twenty times as long
    begun.stream("r", "respond", LONG, size=100)
    view, most = RunView(), 0
    for number, event in enumerate(begun.seen):
        view.apply(event)
        if number % every:
            continue
        painter.paint(view, event.ts)
        most = max(most, len(below(painter.board.root)))
    assert most <= 60


def test_the_figures_of_the_header_move_once_a_second(painter, begun):
    view = RunView().extend(begun.seen)
    painter.paint(view, view.last)
    sent = 0
    for number in range(1, 200):
        view.apply(e.Delta(block="r", of="think", text="word " * 50))
        sent += painter.paint(view, view.last + number / 100) >= 2
    # of 200: two seconds have passed, the text went on in a new widget, the thought got more room
    assert sent <= 9


def test_the_kernel_gives_a_sign_of_life_each_second_until_the_end(painter, begun):
    view, beats = RunView().extend(begun.seen), []
    for now in (10.0, 10.4, 11.1, 12.0, 12.9, 14.0, None):
        painter.paint(view, now)
        beats.append(painter.board.root._dom_classes[2:])
    assert [a != b for a, b in pairwise(beats)] == [False, True, True, False, True, True]
    assert beats[-1] == ()
    assert set(beats[:-1]) == {(name,) for name in theme.BEATS}
    assert all(f"{name} 1s {theme.SILENCE}s" in style_sheet() for name in theme.BEATS)


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.long)])
def test_parts_with_formulas_are_typeset_once_when_they_are_finished(painter, begun, every):
    part = "Let $x_{%}$ be as it was, and so on and on until it is a paragraph of some length. "
    begun.stream(
        "r", "respond", "".join(part.replace("%", str(i)) * 6 + "\n\n" for i in range(80)), size=40
    )
    view, seen = RunView(), []
    for number, event in enumerate(begun.seen):
        view.apply(event)
        if number % every:
            continue
        painter.paint(view, event.ts)
        seen += [x for x in find(painter, w.HTMLMath) if x not in seen]
    assert find(painter, w.HTMLMath) == seen
    assert 8 <= len(seen) <= 40


def test_the_widgets_show_the_same_answer_as_rendering_it_at_once(painter, long_answer):
    play(painter, long_answer, every=30)
    prose = next(x for x in below(painter.board.root) if "agent-nb-prose" in x._dom_classes)
    assert inner(prose) == compact(render(LONG))


def test_a_link_defined_below_reaches_the_parts_above_it(painter, begun):
    begun.answer("See [the docs][d].\n\n" + "word " * 3000 + "\n\n[d]: https://example.com\n")
    begun(e.Node(name="llm", phase="exit", span="m"))
    play(painter, begun.seen, every=30)
    assert 'href="https://example.com"' in text(painter)


def test_a_list_with_a_thought_in_the_middle_is_one_list(painter, begun):
    begun.answer("Rivers:\n\n1. the **Spree**\n2. ", "r1")
    begun.think("Which one was the second?", "t1")
    begun.answer("the **Havel**\n3. the **Dahme**\n\n", "r2")
    begun.think("Now their lengths.", "t2")
    begun.answer("The Spree is the longest.", "r3")
    begun(e.End())
    play(painter, begun.seen, every=1)
    texts = [inner(x) for x in below(painter.board.root) if "agent-nb-prose" in x._dom_classes]
    said = [text for text in texts if "<ol" in text or "longest" in text]
    assert [(text.count("<ol"), text.count("<li")) for text in said] == [(1, 3), (0, 0)]


def test_a_text_that_is_replaced_is_shown_from_its_beginning(painter, begun):
    begun.answer("I know " * 2000)
    begun(e.Respond(content="I don't know", extra={"loom": {"derived": True}}))
    play(painter, begun.seen, every=30)
    prose = next(x for x in below(painter.board.root) if "agent-nb-prose" in x._dom_classes)
    assert "I know" not in inner(prose)
    assert "don't know" in inner(prose)


def test_the_live_answer_has_its_styles_in_one_sheet():
    html = compact(render("# A\n\nb `c`\n\n- d\n\n```python\nif x: pass\n```\n"))
    assert "<p>b <code>c</code></p>" in html
    assert '<span class="an-key">if ' in html
    assert "style" not in compact(render("| a | b |\n|---|---|\n| 1 | 2 |\n"))
    assert ".agent-nb-prose .an-key{color:" in css()


def test_formulas_are_typeset_once_they_are_finished(painter, begun):
    begun.answer("Let $x$ be.\n\n" + "word " * 2000)
    begun(e.Node(name="llm", phase="exit", span="m"))
    play(painter, begun.seen, every=30)
    assert find(painter, w.HTMLMath)


def asked(begun: Any) -> RunView:
    begun.call("k", "write", {"file": "a", "content": "b\n"})
    begun(e.Approval(call_id="k", stage="requested", args={"file": "a", "content": "b\n"}))
    return RunView().extend(begun.seen)


def panel(painter: WidgetPainter) -> Any:
    return next(x for x in below(painter.board.root) if "agent-nb-panel" in x._dom_classes)


def button(painter: WidgetPainter, label: str) -> Any:
    return next(b for b in find(painter, w.Button) if b.description == label)


def press(painter: WidgetPainter, view: RunView, *presses: str) -> None:
    """Press buttons one after the other, each as soon as it is shown."""
    for label in presses:
        button(painter, label).click()
        painter.paint(view, 0.0)


def field(painter: WidgetPainter, label: str) -> Any:
    return next(x for x in below(painter.board.root) if getattr(x, "description", "") == label)


def labels(painter: WidgetPainter) -> list[str]:
    return [b.description for b in find(painter, w.Button)]


def test_stop_can_be_pressed_once(painter, begun, acts):
    view = RunView().extend(begun.seen)
    painter.paint(view, 0.0)
    stop = button(painter, "■ Stop")
    stop.click()
    stop.click()
    painter.paint(view, 0.0)
    assert acts == [("stop", None)]
    assert (stop.description, stop.disabled) == ("stopping…", True)


def test_the_buttons_are_enabled_once_clicks_arrive(acts, begun):
    arrive = [False]
    painter, view = WidgetPainter(acts, "collapse", lambda: arrive[0]), asked(begun)
    painter.paint(view, 0.0)
    assert labels(painter) == ["use ■ to stop"]
    arrive[0] = True
    painter.paint(view, 0.0)
    assert labels(painter) == [
        "■ Stop",
        "Approve",
        "Deny",
        "Edit",
        "Always…",
    ]
    painter.close()


def test_a_lasting_approval_is_offered_where_it_can_be_kept(begun):
    acts = []
    painter, view = (
        WidgetPainter({"approve_lasting": acts.append}, "collapse", lambda: True),
        asked(begun),
    )
    painter.paint(view, 0.0)
    press(painter, view, "Always…", "write in this notebook")
    assert acts == [{"call_id": "k", "scope": "kernel"}]
    painter.close()


def test_a_question_with_a_warning_only_approves_this_call(begun):
    begun.call("k", "write", {"file": "a"})
    begun(
        e.Approval(
            call_id="k", stage="requested", args={"file": "a"}, extra={"warning": "not signed"}
        )
    )
    painter = WidgetPainter({"approve_lasting": print}, "collapse", lambda: True)
    painter.paint(RunView().extend(begun.seen), 0.0)
    assert labels(painter) == ["■ Stop", "Approve", "Deny", "Edit"]
    painter.close()


@pytest.mark.parametrize("parent", ["", "outer"])
def test_a_question_of_a_run_inside_has_its_buttons(painter, begun, parent):
    begun.call("outer", "helper", {"task": "Do it."})
    begun(e.Node(name="helper", phase="enter", span="n", parent=parent))
    begun(e.Call(call_id="k", name="write", args={"file": "a"}, span="n", parent=parent))
    begun(e.Approval(call_id="k", stage="requested", args={"file": "a"}, span="n", parent=parent))
    painter.paint(RunView().extend(begun.seen), 0.0)
    assert {"Approve", "Deny", "Edit"} <= set(labels(painter))


def test_a_question_two_runs_deep_has_its_buttons(painter, begun):
    begun.call("outer", "helper", {"task": "Do it."})
    begun(e.Node(name="helper", phase="enter", span="n", parent="outer"))
    begun(e.Call(call_id="mid", name="helper", args={"task": "Go on."}, span="n", parent="outer"))
    begun(e.Node(name="helper", phase="enter", span="m", parent="mid"))
    begun(e.Call(call_id="k", name="write", args={"file": "a"}, span="m", parent="mid"))
    begun(e.Approval(call_id="k", stage="requested", args={"file": "a"}, span="m", parent="mid"))
    painter.paint(RunView().extend(begun.seen), 0.0)
    assert {"Approve", "Deny", "Edit"} <= set(labels(painter))


@pytest.mark.parametrize("asked_first", ["a", "b"])
def test_the_end_of_a_question_leaves_the_editor_of_another_alone(painter, begun, asked_first):
    """A front end makes each child of a box anew that stands below one that was exchanged."""
    for key in "ab":
        begun.call(key, "write", {"file": key})
    view, shown = RunView().extend(begun.seen), []
    for key in sorted("ab", key=lambda key: key != asked_first):
        view.apply(e.Approval(call_id=key, stage="requested", args={"file": key}))
        painter.paint(view, 0.0)
    painter.presses.opened["b"] = "edit"
    painter.paint(view, 0.0)
    field(painter, "file").value = "typed"
    for event in (
        e.Approval(call_id="a", stage="decided", decision="deny", by="policy"),
        e.Result(call_id="a", name="write", content="nobody answered", status="denied"),
    ):
        shown.append((field(painter, "file"), *panel(painter).children))
        view.apply(event)
        painter.paint(view, 0.0)
    assert (field(painter, "file"), *panel(painter).children) == shown[0] == shown[1]
    assert field(painter, "file").value == "typed"
    assert "nobody answered" in text(painter)


def test_a_bar_above_a_run_inside_leaves_the_widgets_of_its_question_alone():
    stack = slots.Stack(Kit(lambda _: None, SLOTS))
    form = nodes.Form((nodes.Editor("k", (nodes.Field("reason", "line", ""),)),))
    shown = []
    for above in ((), (nodes.Bar(0.5, ""),), (nodes.Pre("printed"), nodes.Bar(1.0, ""))):
        stack.show(nodes.Stack((*above, form)))
        shown.append([x for x in below(stack.widgets[0]) if type(x) is w.Text])
    assert shown[0] == shown[1] == shown[2]
    assert len(shown[0]) == 1


def test_a_formula_that_comes_late_leaves_the_editor_below_alone():
    """A front end makes each child of a box anew that stands below one that was exchanged."""
    stack = slots.Stack(Kit(lambda _: None, SLOTS))
    form = nodes.Form((nodes.Editor("k", (nodes.Field("reason", "line", ""),)),))
    boxes, texts = [], ("plain words", "energy $E=mc^2$", "plain words")
    for node in map(nodes.Prose, texts):
        stack.show(nodes.Stack((node, form, nodes.Row((nodes.T("below"),)))))
        boxes.append(stack.widgets[0].children)
    assert boxes[0] == boxes[1] == boxes[2]
    html = boxes[0][0].children[0]
    assert type(html) is w.HTMLMath
    assert "plain words" in html.value
    assert type(boxes[0][2]) is w.HTML  # nothing to type stands below


def test_a_question_puts_text_above_it_in_a_box_as_it_appears():
    stack = slots.Stack(Kit(lambda _: None, SLOTS))
    text, form = nodes.Prose("energy $E=mc^2$"), nodes.Form((nodes.Row((nodes.T("?"),)),))
    stack.show(nodes.Stack((text,)))
    (html,) = stack.widgets[0].children
    stack.show(nodes.Stack((text, form)))
    (box, _) = stack.widgets[0].children
    assert box.children == (html,)
    stack.show(nodes.Stack((text,)))
    assert stack.widgets[0].children == (box,)


def test_a_run_inside_a_call_needs_widgets_only_while_it_asks():
    line = nodes.Row((nodes.T("a call"),))
    for asked_for, expected in ((line, False), (nodes.Form((line,)), True)):
        run = nodes.Fold((line,), (nodes.Panel((nodes.Step("k", nodes.Stack((asked_for,))),)),))
        assert slots.needs_widgets(run) is expected
        assert slots.needs_widgets(nodes.Box((run,))) is expected


def test_a_step_that_becomes_a_growing_text_shows_that_text():
    step = steps.Step(Kit(lambda _: None, SLOTS))
    step.show(nodes.Step("k", nodes.Row((nodes.T("a call"),))))
    step.show(nodes.Step("k", nodes.Prose(Text("an answer"), key="p")))
    assert "an answer" in step.widgets[0].children[0].children[0].value


def test_without_clicks_the_button_says_what_to_use(acts, begun):
    painter = WidgetPainter(acts, "collapse", lambda: False)
    painter.paint(RunView().extend(begun.seen), 0.0)
    (stop,) = find(painter, w.Button)
    assert (stop.description, stop.disabled) == ("use ■ to stop", True)
    painter.close()


@pytest.mark.parametrize(
    ("presses", "act"),
    [
        (["Approve"], ("approve", {"call_id": "k"})),
        (["Deny", "Deny"], ("deny", {"call_id": "k"})),
        (["Always…", "write in this run"], ("approve", {"call_id": "k", "scope": "tool"})),
        (
            ["Always…", "These arguments in this run"],
            ("approve", {"call_id": "k", "scope": "args"}),
        ),
    ],
)
def test_an_approval_is_answered_by_its_buttons(painter, begun, acts, presses, act):
    view = asked(begun)
    painter.paint(view, 0.0)
    press(painter, view, *presses)
    assert acts == [act]
    assert all(b.disabled for b in find(painter, w.Button) if b.description != "■ Stop")


def questioned(view: RunView, mark: str, code: str) -> RunView:
    """A view in which a replay asks about a call that showed a recorded question before."""
    live = e.Approval(
        stage="requested",
        args={"code": code},
        extra={"warning": "Not signed by you.", "question": mark},
    )
    view.apply(e.Delta(of="approval", block="k", text=encode_event(live).decode()))
    return view


def test_a_question_of_a_replay_shows_its_arguments_and_carries_a_mark(painter, begun, acts):
    view = asked(begun)
    painter.paint(view, 0.0)
    button(painter, "Approve").click()  # nobody has asked this
    painter.paint(questioned(view, "m1", "os.remove('x')"), 0.0)
    assert labels(painter) == ["■ Stop", "Approve", "Deny", "Edit"]
    assert "Not signed by you." in text(painter)
    assert "os.remove" in text(painter)
    assert not button(painter, "Approve").disabled
    button(painter, "Approve").click()
    assert acts[1:] == [("approve", {"call_id": "k", "question": "m1"})]


def test_edited_arguments_carry_the_mark_of_their_question(painter, begun, acts):
    view = questioned(asked(begun), "m1", "1")
    painter.paint(view, 0.0)
    press(painter, view, "Edit")
    field(painter, "code").value = "2"
    button(painter, "Approve as edited").click()
    assert acts == [
        ("approve", {"call_id": "k", "question": "m1", "scope": "once", "args": {"code": "2"}})
    ]


@pytest.mark.parametrize(
    "junk", ["", "{", "[]", '{"type": "call"}', '{"type": "approval", "args": 3}']
)
def test_a_malformed_question_is_not_shown(painter, begun, junk):
    view = asked(begun)
    view.apply(e.Delta(of="approval", block="k", text=junk))
    painter.paint(view, 0.0)
    assert "Approve" in labels(painter)


def test_edited_arguments_are_approved(painter, begun, acts):
    view = asked(begun)
    painter.paint(view, 0.0)
    press(painter, view, "Edit")
    field(painter, "content").value = "a\n\tb"
    field(painter, "other arguments").value = '{"mode": "w"}'
    press(painter, view, "Approve as edited")
    args = {"file": "a", "content": "a\n\tb", "mode": "w"}
    assert acts == [("approve", {"call_id": "k", "scope": "once", "args": args})]


@pytest.mark.parametrize(
    ("typed", "said"), [("{", "This is not JSON"), ("[1]", "Arguments are a JSON object")]
)
def test_edited_arguments_that_are_not_an_object_are_refused_with_a_reason(
    painter, begun, acts, typed, said
):
    view = asked(begun)
    painter.paint(view, 0.0)
    press(painter, view, "Edit")
    field(painter, "other arguments").value = typed
    press(painter, view, "Approve as edited")
    assert acts == []
    assert said in text(painter)
    assert field(painter, "other arguments").value == typed


def test_arguments_that_the_tool_refuses_are_not_submitted(begun):
    acts = []
    actions = {
        "approve": acts.append,
        "describe": lambda payload: ({"properties": {"file": {}, "content": {}}}, refuse),
    }

    def refuse(args):
        return "" if args["file"] == "b" else "file: there is only b."

    painter, view = WidgetPainter(actions, "collapse", lambda: True), asked(begun)
    painter.paint(view, 0.0)
    press(painter, view, "Edit")
    assert [f.description for f in find(painter, w.Textarea)] == ["file", "content"]
    press(painter, view, "Approve as edited")
    assert acts == []
    assert "there is only b" in text(painter)
    field(painter, "file").value = "b"
    press(painter, view, "Approve as edited")
    assert [a["args"] for a in acts] == [{"file": "b", "content": "b\n"}]
    painter.close()


def test_the_words_of_a_denial_are_its_reason(painter, begun, acts):
    view = asked(begun)
    painter.paint(view, 0.0)
    press(painter, view, "Deny")
    (line,) = find(painter, w.Text)
    line.value = "  use\tanother file " + "x" * 5000
    press(painter, view, "Deny")
    [(action, payload)] = acts
    assert (action, payload["call_id"]) == ("deny", "k")
    assert payload["reason"].startswith("use another file x")
    assert len(payload["reason"]) == 2000


def test_another_question_about_the_call_opens_nothing(painter, begun, acts):
    """A replay may ask again, about other arguments than those that are being edited."""
    view = asked(begun)
    painter.paint(view, 0.0)
    press(painter, view, "Edit")
    painter.paint(questioned(view, "m1", "os.remove('x')"), 0.0)
    assert labels(painter) == ["■ Stop", "Approve", "Deny", "Edit"]
    press(painter, view, "Edit")
    assert field(painter, "code").value == "os.remove('x')"


def test_back_from_editing_shows_the_question_again(painter, begun):
    view = asked(begun)
    painter.paint(view, 0.0)
    press(painter, view, "Edit", "Back")
    assert "Approve" in labels(painter)
    assert not find(painter, w.Textarea)


def test_after_the_decision_there_is_nothing_to_press(painter, begun):
    view = asked(begun)
    painter.paint(view, 0.0)
    view.apply(e.Approval(call_id="k", stage="decided", decision="allow", by="click"))
    painter.paint(view, 0.0)
    assert labels(painter) == ["■ Stop"]


@pytest.mark.parametrize("step", [20, pytest.param(4, marks=pytest.mark.long)])
def test_the_live_view_is_as_harmless_as_the_static_one(acts, hostile, hostile_run, hazards, step):
    for hurt in hostile[::step]:
        painter = WidgetPainter(acts, "show", lambda: True)
        view = RunView()
        for event in hostile_run(hurt):
            view.apply(event)
            painter.paint(view, 0.0)
        values = [
            x.value
            for x in below(painter.board.root)[2:]
            if isinstance(x, w.HTML | w.HTMLMath) and x.value != KEYS  # which is constant
        ]
        assert [h for value in values for h in hazards(value)] == []
        painter.close()


def test_everything_is_closed_in_the_end(acts, rich):
    before = set(w.widgets.widget._instances)
    painter = WidgetPainter(acts, "collapse", lambda: True)
    play(painter, rich.seen)
    painter.close()
    left = set(w.widgets.widget._instances) - before
    assert not left


def test_keys_find_the_form_and_its_buttons_by_their_classes():
    assert f".{FORM}'" in KEYS
    assert f".{ACTION}'" in KEYS
    assert KEYS.count('"') == 6  # those around the three attributes
    assert "//" not in KEYS


def test_buttons_of_different_calls_are_different_keys():
    keys = {nodes.Button("deny", "Deny", {"call_id": c}).key for c in "ab"}
    assert len(keys) == 2


class Watched:
    """A page whose views are counted, by a clock of its own; `shown`: what it displayed anew."""

    def __init__(self, acts: Acts) -> None:
        self.now = 0.0
        self.heard: list[bool] = []
        self.shown: list[bool] = []
        self.painter = WidgetPainter(
            acts,
            "collapse",
            lambda: True,
            show=lambda data, metadata, update: self.shown.append(update),
            clock=lambda: self.now,
        )
        self.root = self.painter.board.root

    def counts(self, number: int) -> None:
        """Take a count as a front end sends it."""
        self.root.set_state({"_view_count": number})

    def paints(self, begun: Any, *times: float) -> list[bool]:
        """Paint at these times; return what was displayed at all."""
        view = RunView().extend(begun.seen)
        for self.now in times:
            self.painter.paint(view, self.now)
        return self.shown


@pytest.fixture
def watched(acts, monkeypatch):
    heard: list[bool] = []
    monkeypatch.setattr(root, "is_heard_beside_cell", lambda _: True)
    monkeypatch.setattr(root, "hear_beside_cell", lambda _: lambda: heard.append(True))
    made = Watched(acts)
    made.heard = heard
    yield made
    made.painter.board.close()


def test_a_page_that_loses_its_view_is_displayed_once_more(watched, begun):
    watched.counts(1)
    watched.counts(0)
    assert watched.paints(begun, GONE - 0.1) == []
    assert watched.paints(begun, GONE, GONE + 1) == [False]
    assert not watched.painter.views.lost
    watched.counts(1)
    assert watched.paints(begun, 1e6) == [False]


def test_each_count_is_acknowledged_as_the_next_one_waits_for_it(watched):
    for number in (1, 0, 0):
        watched.counts(number)
    assert len(watched.heard) == 3


def test_a_page_that_opens_is_counted_from_none(watched):
    watched.counts(1)
    assert watched.root.get_state()["_view_count"] == 0
    assert watched.root.get_state("_view_count") == {"_view_count": 0}
    assert len(watched.heard) == 1
    watched.counts(1)
    watched.counts(0)
    assert watched.root.get_state("children")
    assert not watched.painter.views.lost


def test_a_page_that_is_about_to_be_replaced_is_not_counted(watched, begun):
    watched.counts(1)
    watched.painter.leave()
    assert watched.root._view_count is None
    watched.counts(0)
    assert watched.paints(begun, 1e6, 2e6) == []


@pytest.mark.parametrize("opened", [False, True])
def test_widgets_stay_only_for_a_page_that_opened_during_the_run(watched, opened):
    watched.counts(1)
    if opened:
        watched.root.get_state()
    watched.painter.leave()
    watched.painter.close()
    assert (watched.root.comm is not None) is opened


def test_views_are_not_counted_where_messages_come_after_the_cell(painter):
    assert painter.board.root._view_count is None
    painter.board.root.set_state({"_view_count": 1})
    assert not painter.views.counted
