"""The texts and nodes of the cards."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import pytest
from helpers.pictures import attached, png

from agent_nb import events as e
from agent_nb.host import plugins
from agent_nb.view import nodes, theme, values
from agent_nb.view.bundle import make_bundle, make_folded_bundle, page_forms
from agent_nb.view.cards import base, header
from agent_nb.view.cards.base import Context
from agent_nb.view.cards.header import describe_phase
from agent_nb.view.draw import html, markdown
from agent_nb.view.draw.text import draw
from agent_nb.view.format import (
    LARGEST,
    extract_gist,
    format_clock,
    format_count,
    format_duration,
    format_money,
)
from agent_nb.view.layout import Layout, page
from agent_nb.view.state.fold import RunView

LONG = "word " * 60_000


def said(seen: Any, **context: Any) -> str:
    return draw(page(RunView().extend(seen), Context(**context)))


def long_run(kind: Any) -> list[e.Event]:
    text = "\n\n".join(f"Paragraph {n} of the story." for n in range(60_000))
    return [e.RunStart(), kind(content=text), e.End(status="ok")]


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [e.Respond, e.Think])
def test_a_saved_page_of_a_very_long_text_has_head_tail_and_size(kind):
    page_ = make_bundle(long_run(kind))["text/html"]
    assert "Paragraph 0 of" in page_
    assert "Paragraph 59999 of" in page_
    assert re.search(r"… 1,\d{3},\d{3} characters left out here", page_)
    assert len(page_) < 8 * base.LONGEST


@pytest.mark.parametrize(
    "events",
    [
        [e.RunStart(model=LONG)],
        [e.Progress(call_id="k", message=LONG), e.Progress(call_id="k", fraction=0.5)],
        [e.Node(name=LONG, span="n"), e.Node(name=LONG, phase="exit", span="n", result=LONG)],
        [e.Extension(namespace=LONG, name=LONG)],
        [e.Interrupt(reason="limit", detail=LONG)],
        [e.Call(call_id="k", name="x", args={LONG: [1]})],
    ],
    ids=lambda events: events[-1].type,
)
def test_a_name_or_message_of_any_length_leaves_the_page_small(events):
    forms = page_forms(page(RunView().extend(events)))
    assert max(map(len, forms.values())) < 100_000


def test_the_live_view_of_a_very_long_text_has_all_of_it():
    assert "Paragraph 30000 of" in said(long_run(e.Respond), live=True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0123, "12 ms"), (1.84, "1.8 s"), (14.2, "14 s"), (59.7, "1 min"), (125, "2 min 5 s")],
)
def test_durations(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0"),
        (212, "212"),
        (1900, "1.9k"),
        (18_400, "18k"),
        (999_900, "1.0M"),
        (2_500_000, "2.5M"),
    ],
)
def test_counts(n, text):
    assert format_count(n) == text


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (0, "$0.00"),
        (0.0041, "$0.0041"),
        (4.63e-5, "$0.000046"),
        (2e-9, "$0.000000002"),
        (1.234, "$1.23"),
    ],
)
def test_prices(cost, text):
    assert format_money(cost) == text


@pytest.mark.parametrize("write", [format_money, format_count])
def test_numbers_too_large_for_a_float_are_written_as_the_largest(write):
    assert write(10**400) == write(LARGEST)
    assert write(-(10**400)) == write(-LARGEST)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Compare prices. Then more.", "Compare prices"),
        ("## Plan\n- a", "Plan"),
        ("", ""),
        ("one line", "one line"),
        ("x" * 200, "x" * 89 + "…"),
    ],
)
def test_the_gist_of_a_thought_is_its_first_sentence(text, short):
    assert extract_gist(text) == short


def test_the_header_says_status_model_source_turn_and_figures(begun):
    begun(e.Metric(turn=2, total=e.Counts(input=1900, output=212, cost=0.004)))
    first = said(begun.log, now=begun.now + 14, live=True).split("\n")[0]
    assert (
        first
        == "● waiting for the model  openai/gpt-5.1  turn 2 of 12   0:14 · 1.9k in · 212 out · $0.004"
    )


def figures(*metrics):
    view = RunView().extend(metrics)
    return "".join(run.text for run in header.card(view, Context()).right)


def test_a_cost_with_an_estimate_is_about_and_one_with_a_gap_is_at_least():
    exact = e.Counts(input=100, output=10, cost=0.01)
    unknown = e.Counts(input=100, output=10)
    first = e.Metric(step=exact, total=exact)
    assert figures(first).endswith("100 in · 10 out · $0.01")
    about = e.Metric(step=exact, total=exact, estimated=True)
    assert figures(about, first).endswith("≈ 100 in · ≈ 10 out · ≈ $0.01")
    assert figures(first, e.Metric(step=unknown, total=exact)).endswith("≥ $0.01")
    child = e.Node(name="child", phase="enter", span="c")
    assert figures(first, child, e.Metric(step=unknown, span="c")).endswith("≥ $0.01")
    assert figures(e.Metric(step=unknown, total=unknown)).endswith("10 out")
    assert figures(first, e.Metric(total=exact)).endswith("· $0.01")


def test_the_page_of_an_ended_run_has_no_running_node():
    seen = [
        e.RunStart(model="m", ts=1.0),
        e.Node(name="act", span="n", ts=1.0),
        e.Call(call_id="c", name="sh", span="n", ts=1.0),
        e.Started(call_id="c", name="sh", span="n", ts=1.0),
    ]
    assert "running" in said(seen)
    page = said([*seen, e.End(ts=2.0)])
    assert "running" not in page
    assert "not finished" in page


@pytest.mark.parametrize(
    "payload",
    [{"note": "3 earlier turns", "turns": 3}, {}, None, {"note": 7}, {"note": "x" * 10_000}],
)
def test_the_header_names_turns_that_come_from_records_of_others(payload):
    head = said(
        [e.RunStart(model="m"), e.State(kind="foreign_turns", payload=payload)]
    ).splitlines()[0]
    assert ("3 earlier turns" in head) is bool(payload and payload.get("turns"))
    assert len(head) < 400


def test_the_clock_of_a_replay_shows_the_recorded_times(begun):
    view = RunView(recorded=True).extend(begun.seen)
    later = begun.now + 30 * 24 * 3600
    assert "720:" not in draw(page(view, Context(now=later, live=True)))
    assert "720:" in said(begun.log, now=later, live=True).split("\n")[0]


def test_a_traceback_shows_its_last_line_and_folds_the_rest(begun):
    trace = 'Traceback (most recent call last):\n  File "<cell>", line 2, in <module>\n    frame["price"]\n    ^^^^^\nNameError: no frame'
    begun.tool("k", "python", {"code": "frame['price']"}, status="error", content=trace)
    text = said(begun.seen)
    assert "NameError: no frame\n" in text
    assert "Traceback — 5 lines" in text
    assert "^^^^^ NameError" not in text


def test_the_message_of_a_syntax_error_is_its_last_line(begun):
    trace = 'File "<cell>", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax'
    begun.tool("k", "python", {"code": "def f(:"}, status="error", content=trace)
    text = said(begun.seen)
    assert "  SyntaxError: invalid syntax\n" in text
    assert "Traceback — 4 lines" in text


def test_a_display_that_is_shown_has_no_text_in_its_place(begun):
    printed = "before\n<IPython.core.display.HTML object>\nafter\n"
    begun.call("k", "python", {"code": "show()"})
    begun(e.Progress(call_id="k", text=printed))
    shown = {"display": {"text/html": "<b>bold</b>"}}
    begun(e.Result(call_id="k", status="ok", content=printed, attachments=(shown,)))
    text = said(begun.seen)
    assert "before\n" in text
    assert "IPython" not in text


@pytest.mark.parametrize("status", ["cancelled", "timeout"])
def test_a_stopped_call_shows_its_output_once(begun, status):
    begun.call("k", "python", {"code": "run()"})
    begun(e.Progress(call_id="k", text="epoch 1\nepoch 2\n"))
    begun(e.Result(call_id="k", status=status, content="epoch 1\nepoch 2\nStopped early."))
    text = said(begun.seen)
    assert (text.count("epoch 1"), text.count("Stopped early.")) == (1, 1)


def test_a_message_that_begins_with_the_letters_of_the_output_is_whole(begun):
    begun.call("k", "fetch", {})
    begun(e.Progress(call_id="k", text="4"))
    begun(e.Result(call_id="k", status="error", content="404 not found"))
    assert "404 not found" in said(begun.seen)


def test_the_header_does_not_explain_a_model_that_the_cell_names(tape):
    tape(e.RunStart(model="m", settings={"source": "given"}))
    assert "given" not in draw(page(RunView().extend(tape.seen)))


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("ok", "✓ done"),
        ("error", "✕ failed"),
        ("interrupted", "■ stopped"),
        ("limit", "■ stopped at a limit"),
    ],
)
def test_the_header_says_how_a_run_ended(begun, status, word):
    begun(e.End(status=status))
    assert said(begun.log).startswith(word)


def test_the_phase_is_what_the_run_is_doing(begun):
    view = RunView()
    seen = [describe_phase(view)[0]]
    events = [
        *begun.seen,
        e.Delta(of="think", block="t", text="x"),
        e.Think(block="t", content="x"),
        e.Delta(of="call", block="b", name="a", text="{"),
        e.Call(call_id="a", name="a", block="b"),
        e.Approval(call_id="a"),
        e.Started(call_id="a", name="a"),
        e.Started(call_id="b", name="b"),
        e.Result(call_id="a"),
        e.Result(call_id="b"),
        e.Delta(of="respond", block="r", text="x"),
    ]
    for event in events:
        view.apply(event)
        if describe_phase(view)[0] != seen[-1]:
            seen.append(describe_phase(view)[0])
    assert seen == [
        "starting",
        "waiting for the model",
        "thinking",
        "waiting for the model",
        "writing a call",
        "waiting for the model",
        "waiting for you",
        "running a",
        "running 2 tools",
        "running b",
        "waiting for the model",
        "answering",
    ]


def test_progress_in_words(begun):
    begun.call("k", "scan", {})
    begun(
        e.Started(call_id="k"),
        e.Progress(call_id="k", data={"done": 0, "total": 1000, "unit": "rows"}),
    )
    begun(
        e.Progress(
            call_id="k", data={"done": 620, "total": 1000, "unit": "rows"}, message="scanning"
        ),
        after=2.0,
    )
    assert "62 % · 620 of 1,000 rows · 310/s · 1.0 s left · scanning" in said(begun.log)


def test_the_footer_says_how_quick_it_was(rich):
    line, opened = said(rich.log).split("\n")[-2:]
    assert line == "ℹ  first token 400 ms · 71 tok/s"
    assert f"run {rich.log.run} · {len(rich.log)} events   _agent.to_frame()" in opened


def test_the_cards_of_a_folded_line_name_no_variable_for_their_runs(rich):
    page_html = make_folded_bundle("1 model call", [rich.log])["text/html"]
    assert f"run {rich.log.run} · {len(rich.log)} events" in page_html
    assert "_agent" not in page_html


def test_streaming_arguments_are_shown_unescaped(begun):
    view = RunView().extend(begun.seen)
    view.apply(e.Delta(of="call", block="b", name="write", text='{"content": "a\\nb \\"q\\"'))
    assert 'b "q"' in draw(page(view))


def test_a_denied_call_says_who_and_why(begun):
    begun.call("k", "rm", {"path": "x"})
    begun(e.Approval(call_id="k", stage="requested", args={"path": "x"}))
    begun(
        e.Approval(call_id="k", stage="decided", decision="deny", by="click", reason="not that one")
    )
    begun(e.Result(call_id="k", name="rm", status="denied", content="The user said no."))
    assert "You denied this call: not that one" in said(begun.log)


def test_an_open_question_shows_all_of_what_it_asks_about(begun):
    long = "line\n" * 50 + "rm -rf /"
    begun.call("k", "python", {"code": long})
    begun(e.Approval(call_id="k", stage="requested", args={"code": long}))
    drawn = html.draw_html(page(RunView().extend(begun.log), Context(live=True, can_click=True)))
    assert drawn.count("line\n") == 50
    assert "rm -rf /" in drawn


@pytest.mark.parametrize(
    ("args", "preview"),
    [
        ({"text": "safe\nrm -rf / #\rharmless"}, ""),
        ({"command": "echo \x1b]; rm -rf / ; echo \x07"}, ""),
        ({"text": "a"}, "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+rm -rf /\r+harmless\n"),
        ({"text": "a"}, "one line\nrm -rf /\rharmless"),
        ({"text": "safe\nrm -rf /"}, "- to: ada\n- subject: tea"),
    ],
)
def test_no_character_or_preview_hides_what_a_call_would_do(begun, args, preview):
    begun.call("k", "send", args)
    begun(e.Approval(call_id="k", stage="requested", args=args, extra={"preview": preview}))
    view = RunView().extend(begun.log)
    question = page(view, Context(live=True, can_click=True)).sections[-1].child
    for drawn in (html.draw_html(question), draw(question), markdown.draw(question)):
        assert drawn.count("rm -rf /") >= 1 + ("command" in args)  # the line of the call has it too
        assert not preview.endswith("harmless") or "⟨U+000D⟩harmless" in drawn


def test_without_clicks_an_open_question_says_where_to_answer(begun):
    begun.call("k", "rm", {})
    begun(e.Approval(call_id="k", stage="requested"))
    assert "Answer in the prompt below this cell" in said(begun.log, live=True)


@pytest.mark.parametrize(
    ("prompt", "pictures", "words"),
    [
        ("What is this?", 1, "prompt, 1 picture"),
        ("What\nis this?", 2, "2 lines, 2 pictures"),
        ("What\nis this?", 0, "2 lines"),
    ],
)
def test_a_closed_prompt_says_how_many_pictures_it_has(prompt, pictures, words):
    user = e.User(content=prompt, attachments=(attached(png()),) * pictures)
    (line,) = (line for line in said([e.RunStart(), user]).splitlines() if "❯" in line)
    assert line.rstrip().endswith(f"   {words}")


def test_a_message_about_wrong_arguments_keeps_its_lines(begun):
    words = "The arguments of 'f' are not valid:\n- a: is missing\n- b: is not a parameter"
    begun.tool("k", "f", {"b": 1}, status="error", content=words)
    assert "- a: is missing\n" in said(begun.log)
    shown = make_bundle(begun.log)
    assert "- a: is missing\n- b: is not a parameter" in shown["text/html"]
    assert "- a: is missing\n" in shown["text/markdown"]


def test_soft_errors_are_steps_and_hard_ones_stand_out(begun):
    begun.think("x", "t")
    begun(
        e.Error(code="retry", message="429"), e.Error(code="provider", message="500", raw="<html>")
    )
    keys = [(type(s.child), s.key) for s in page(RunView().extend(begun.log)).sections]
    assert [kind for kind, _ in keys] == [nodes.Row, nodes.Row, nodes.Panel, nodes.Box]


def test_an_unchanged_card_yields_the_identical_node(rich):
    view, layout = RunView().extend(rich.log), Layout()
    first, second = layout.page(view), layout.page(view)
    assert [a.child is b.child for a, b in zip(first.sections, second.sections, strict=True)][
        1:-1
    ] == [True] * (len(first.sections) - 2)


def test_another_note_about_edited_arguments_is_drawn_at_once(begun):
    begun.call("k1", "write", {"a": 1})
    begun(e.Approval(call_id="k1", stage="requested", args={"a": 1}))
    view, layout = RunView().extend(begun.log), Layout()
    for note in ("This is not JSON.", "Arguments are a JSON object."):
        where = {"now": begun.now, "live": True, "can_click": True, "opened": {"k1": "edit"}}
        assert note in str(layout.page(view, Context(**where, faults={"k1": {"a": note}})))


def test_every_kind_of_card_has_its_file():
    kinds = {
        "user",
        "think",
        "call",
        "call-add-cell",
        "respond",
        "error",
        "retry",
        "interrupt",
        "approval",
        "node",
        "plan",
        "map",
        "state",
        "context",
        "model",
        "extension",
        "drift",
        "header",
        "footer",
    }
    assert set(plugins.list_builtin("view.cards")) == kinds


@pytest.mark.parametrize(
    ("content", "display", "kind"),
    [
        ("plain", None, nodes.Pre),
        ("Traceback (most recent call last):\n  x\nKeyError: 1", None, nodes.Row),
        ("--- a\n+++ b\n@@ -1 +1 @@", None, nodes.Diff),
        ('{"a": 1}', None, nodes.Json),
        ({"a": [1]}, None, nodes.Json),
        ([{"a": 1, "b": "x"}, {"a": 2}], None, nodes.Table),
        ([{"a": [1]}], None, nodes.Json),
        ("x", {"text/html": "<b>x</b>"}, nodes.Html),
        ("x", {"text/markdown": "**x**"}, nodes.Prose),
        ("x", {"image/png": "iVBORw0KGgoAAAANSUhEUg=="}, nodes.Image),
        ("x", {"image/png": "PHN2Zz4="}, nodes.Pre),
        ("x", {"image/svg+xml": "<svg/>"}, nodes.Pre),
        ("x", {"application/json": {"a": 1}, "text/plain": "y"}, nodes.Json),
        ("", None, None),
    ],
)
def test_a_result_is_shown_in_its_richest_safe_form(content, display, kind):
    made = values.value_nodes(content, display)
    assert (type(made[0]) if made else None) is kind


def test_long_texts_keep_head_and_tail():
    text = values.bound_text("a" * 30_000 + "z" * 30_000)
    assert text.startswith("aaa")
    assert text.endswith("zzz")
    assert "40,000 characters left out" in text


@pytest.mark.parametrize(
    ("content", "display", "gist"),
    [
        ("one", None, "one"),
        ("a\nb\n", None, "2 lines"),
        ("a\n" * 1_000_000, None, "1,000,000 lines"),
        ([1, 2], None, "2 items"),
        ({"a": 1, "b": [2]}, None, "a, b"),
        ({}, None, "{}"),
        (3, None, "3"),
        ("x", {"image/png": "…"}, "image"),
        ("DataFrame of shape 3 × 2\n a b", None, "DataFrame of shape 3 × 2"),
    ],
)
def test_the_gist_of_a_result(content, display, gist):
    assert values.describe_result(content, display) == gist


def install(monkeypatch: Any, card: Any, part: str = "tool") -> None:
    """Install a card for the tool `plot`, as an entry point would."""
    real = plugins.load_plugin
    monkeypatch.setattr(base, "_names_of_parts", lambda: frozenset({f"{part}-plot"}))
    monkeypatch.setattr(
        base,
        "load_plugin",
        lambda room, name: card if name == f"{part}-plot" else real(room, name),
    )


def test_a_tool_can_have_an_installed_card(begun, monkeypatch):
    def mine(state: Any, context: Context) -> nodes.Node:
        return nodes.Row((nodes.T(f"my {state.content}"),))

    install(monkeypatch, mine)
    begun.tool("k", "plot", {}, content="picture")
    assert "my picture" in said(begun.log)


def test_an_installed_card_draws_the_whole_of_an_ended_call_only(begun, monkeypatch):
    def mine(state: Any, context: Context) -> nodes.Node | None:
        return nodes.Row((nodes.T(f"my {state.name}"),)) if state.status == "ok" else None

    install(monkeypatch, mine, "call")
    begun.call("k", "plot", {"x": 1})
    assert "my plot" not in said(begun.log)
    begun.tool("l", "plot", {"x": 2}, content="picture")
    begun.tool("m", "plot", {"x": 3}, status="error", content="no picture")
    text = said(begun.log)
    assert "my plot" in text
    assert "picture\n" not in text.partition("my plot")[2].partition("no picture")[0]
    assert "no picture" in text


def test_an_installed_card_of_a_result_is_called_once_for_a_page(begun, monkeypatch):
    calls = []
    monkeypatch.setattr(base, "_names_of_parts", lambda: frozenset({"tool-plot"}))
    monkeypatch.setattr(
        base,
        "load_plugin",
        lambda room, name, real=plugins.load_plugin: (
            (lambda s, c: calls.append(s)) if name == "tool-plot" else real(room, name)
        ),
    )
    begun.call("k", "plot", {})
    begun(e.Progress(call_id="k", text="a\n"), e.Result(call_id="k", name="plot", content="a\nb"))
    assert "b" in said(begun.log)
    assert len(calls) == 1


def test_a_failing_card_of_another_package_is_reported(begun, monkeypatch):
    monkeypatch.setattr(base, "_names_of_parts", lambda: frozenset({"tool-plot"}))
    monkeypatch.setattr(
        base,
        "load_plugin",
        lambda room, name, real=plugins.load_plugin: (
            (lambda s, c: 1 / 0) if name == "tool-plot" else real(room, name)
        ),
    )
    begun.tool("k", "plot", {})
    assert "The card 'tool-plot' cannot be used: ZeroDivisionError: division by zero." in said(
        begun.log
    )


# --- the static page


def test_the_static_page_passes_a_sanitiser(rich, hazards):
    assert hazards(make_bundle(rich.log)["text/html"]) == []


def test_a_word_wider_than_the_page_is_broken(rich):
    root = make_bundle(rich.log)["text/html"].partition(">")[0]
    assert "overflow-wrap:break-word" in root


def test_the_static_page_is_readable_without_styles(rich):
    import re

    text = re.sub(r"<[^>]+>", "", re.sub(r' style="[^"]*"', "", make_bundle(rich.log)["text/html"]))
    for expected in (
        "✓ done",
        "Thought for",
        "✕ error",
        "No such file: a.csv.",
        "You approved all calls of this tool for this run",
    ):
        assert expected in text


def test_a_page_of_fifty_calls_is_small(begun):
    for i in range(50):
        begun.tool(f"k{i}", "read", {"file": f"{i}.txt"}, content="x" * 200)
    assert len(make_bundle(begun.log)["text/html"]) < 120_000


def luminance(rgb: tuple[float, float, float]) -> float:
    parts = [c / 255 for c in rgb]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def mix(
    colour: tuple[float, ...], share: float, into: tuple[float, ...]
) -> tuple[float, float, float]:
    return tuple(c * share + i * (1 - share) for c, i in zip(colour[:3], into[:3], strict=True))  # type: ignore[return-value]


# (ground, text, roles) of JupyterLab's light and dark themes, and of a page without roles
THEMES: dict[
    str, tuple[tuple[int, int, int], tuple[int, int, int], dict[str, tuple[int, int, int]]]
] = {
    "light": (
        (255, 255, 255),
        (33, 33, 33),
        {
            "muted": (117, 117, 117),
            "ok": (56, 142, 60),
            "run": (25, 118, 210),
            "wait": (245, 124, 0),
            "bad": (211, 47, 47),
        },
    ),
    "dark": (
        (17, 17, 17),
        (255, 255, 255),
        {
            "muted": (145, 145, 145),
            "ok": (76, 175, 80),
            "run": (33, 150, 243),
            "wait": (255, 152, 0),
            "bad": (244, 67, 54),
        },
    ),
    "bare light": ((255, 255, 255), (0, 0, 0), {}),
    "bare dark": ((13, 17, 23), (230, 237, 243), {}),
}


def rgb(text: str) -> tuple[float, ...]:
    return tuple(float(n) for n in text[4:-1].split(","))


@pytest.mark.parametrize("scheme", THEMES)
@pytest.mark.parametrize("tone", theme.ROLES)
def test_text_in_every_tone_has_aa_contrast_on_plain_and_tinted_ground(scheme, tone):
    ground, text, roles = THEMES[scheme]
    _, fallback, share = theme.ROLES[tone]
    colour = roles.get(tone, rgb(fallback))
    shown = mix(colour, share / 100, text)
    assert contrast(shown, ground) >= 4.5
    assert contrast(shown, mix((128, 128, 128), 0.09, ground)) >= 4.5
    assert contrast(shown, mix(colour, 0.1, ground)) >= 4.5


@pytest.mark.parametrize("scheme", THEMES)
@pytest.mark.parametrize("family", theme.SYNTAX)
def test_code_has_aa_contrast_on_its_ground(scheme, family):
    ground, text, _ = THEMES[scheme]
    colour, share = theme.SYNTAX[family]
    assert contrast(mix(rgb(colour), share / 100, text), mix((128, 128, 128), 0.09, ground)) >= 4.5


@pytest.mark.parametrize(
    ("text", "short"),
    [("_use_ my_tool", "use my_tool"), ("a > b here", "a > b here"), ("> quoted", "quoted")],
)
def test_a_gist_keeps_names_and_comparisons(text, short):
    assert extract_gist(text) == short


def test_a_call_does_not_repeat_what_its_line_says(begun):
    begun.tool("k1", "save", {"file": "a.csv"}, content="2 lines written")
    begun.tool("k2", "count", {"of": "rows"}, content=42)
    begun.tool("k3", "save", {"file": "a.csv"}, content="one\ntwo")
    text = said(begun.log)
    assert text.count("2 lines written") == 1
    assert text.count("42") == 1
    assert "one\n" in text
    assert html.draw_html(page(RunView().extend(begun.log))).count("<details") == 1


def test_arguments_that_the_line_has_no_room_for_are_in_the_fold(begun):
    begun.tool(
        "k",
        "save",
        {"file": "a.csv", "title": "all the prices of last year", "sheet": "the first of them"},
        content="x" * 60,
    )
    assert "<details" in html.draw_html(page(RunView().extend(begun.log)))


def test_a_footer_omits_a_pace_that_cannot_be_measured(begun):
    begun(e.Metric(total=e.Counts(input=10, output=50, duration=0.001, ttft=0.0)), e.End())
    assert "tok/s" not in said(begun.log)
    assert "first token" not in said(begun.log)


def test_a_page_without_styles_keeps_two_sides_apart_and_words_bold(rich):
    made = html.draw_html(page(RunView().extend(rich.log)))
    bare = re.sub(' (?:style|class|role|aria-[a-z]+)="[^"]*"', "", made)
    assert "<b>✓ done</b>" in bare
    assert "<b><code>scan</code></b>" in bare
    assert "<i>Look at the columns first</i>" in bare
    assert re.search("<span>\u2003.*1 item", bare)
    assert "<code>column=" not in bare


def test_rows_that_do_not_open_are_aligned_with_those_that_do(rich):
    made = html.draw_html(page(RunView().extend(rich.log)))
    assert f'<summary style="{theme.SUMMARY}">' in made
    assert f'style="{theme.STEP_LINE};' in made


def test_true_and_false_are_coloured_as_null_is_not_as_numbers():
    made = html.draw_html(nodes.Json([True, False, None, 1]))
    assert made.count(theme.syntax("keyword")) == 3


def test_json_that_is_cut_in_markdown_says_how_much_follows():
    (block,) = markdown.blocks(nodes.Json(list(range(60))))
    assert block.splitlines()[-3:] == ["  38,", "… 22 more lines", "```"]


def test_markdown_is_a_list_of_steps_with_their_bodies_inside(begun):
    begun.think("Look first.", "t")
    begun.tool("k", "snake_case", {"a": 1}, content="one\n```\ntwo")
    begun.answer("Done.", "r")
    text = make_bundle(begun.log)["text/markdown"]
    assert "- Thought" in text
    assert (
        "\n- ƒ `snake_case` `a=1` — 3 lines **✓** 500 ms\n\n  ````\n  one\n  ```\n  two\n  ````\n\nDone."
        in text
    )


@pytest.mark.parametrize(
    ("payload", "line"),
    [
        (
            {"text": "df: int", "tokens": 1310, "variables": {"df": {}, "x": {}}, "cells": 1},
            "context: 2 variables, 1 cell, 1.3k tokens",
        ),
        ({"text": "df", "tokens": "<b>", "variables": [], "cells": True}, "context: "),
        ({"text": ""}, None),
        ({"text": "", "changed": ["`df` 1 → 2"]}, None),
        ("text", None),
    ],
)
def test_the_context_is_a_line_that_opens(payload, line):
    events = [e.RunStart(), e.User(content="hi"), e.State(kind="context", payload=payload)]
    shown = draw(page(RunView().extend(events), Context()))
    said = [row.strip() for row in shown.splitlines() if "context:" in row]
    assert (said == [f"◫ {line}".strip()]) if line is not None else not said


def test_the_header_says_which_variable_had_the_model_asked_anew():
    payload = {"text": "df", "changed": ["`df` 120×2 → 121×2"]}
    events = [e.RunStart(), e.User(content="hi"), e.State(kind="context", payload=payload)]
    shown = draw(page(RunView().extend(events), Context()))
    assert "asked anew: `df` 120×2 → 121×2" in shown
    again = draw(page(RunView(badge="replayed").extend(events), Context()))
    assert "asked anew" not in again


def shown_call(*pictures: bytes, content: Any = "", output: str = "") -> list[e.Event]:
    """Return a call that returned these pictures."""
    return [
        e.Call(call_id="c", name="plot", turn=1),
        e.Started(call_id="c", name="plot"),
        *([e.Progress(call_id="c", text=output)] if output else []),
        e.Result(
            call_id="c",
            name="plot",
            content=content,
            attachments=tuple(map(attached, pictures)),
        ),
    ]


def test_the_pictures_of_a_call_stand_open_below_its_line_once():
    said = "one\n[figure 1: 70×30 pixels]\ntwo\n"
    html_, text = (
        make_bundle(shown_call(png(70, 30), content=said, output=said))[kind]
        for kind in ("text/html", "text/plain")
    )
    folded = re.sub("<details.*?</details>", "", html_, flags=re.DOTALL)
    assert folded.count(f'src="data:image/png;base64,{attached(png(70, 30))["data"]}"') == 1
    assert html_.count("<img") == 1
    assert 'alt="figure 1 of plot' in html_
    assert "[figure 1" not in html_
    assert [line.strip() for line in text.splitlines()][-3:] == ["one", "two", "[picture 70×30]"]
    assert "1 figure" in text


def test_a_failed_call_shows_the_pictures_it_had_drawn():
    *begun, result = shown_call(png(7, 3))
    failed = msgspec.structs.replace(result, status="error", content="KeyError: 1")
    assert "[picture 7×3]" in make_bundle([*begun, failed])["text/plain"]


def test_of_many_pictures_the_first_are_open_and_the_others_folded():
    pictures = [png(n, 1) for n in range(1, values.OPEN_PICTURES + 5)]
    made = values.draw_attachments([attached(p) for p in pictures])
    assert [type(n) for n in made] == [nodes.Image] * values.OPEN_PICTURES + [nodes.Fold]
    assert made[-1].title == "4 more pictures"


@pytest.mark.parametrize(
    "attachment",
    [
        {"media_type": "image/svg+xml", "data": "PHN2Zz4="},
        {"media_type": "image/png", "data": "PHN2Zz4="},
        {"media_type": "image/png", "data": 3},
        {"media_type": "image/png", "data": "iVBORw0KGgo" + "A" * values.LARGEST_IMAGE},
        {},
    ],
    ids=["svg", "not what it says", "no text", "huge", "empty"],
)
def test_what_is_no_picture_is_words(attachment):
    (node,) = values.draw_attachments([attachment])
    assert isinstance(node, nodes.Row)


@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan, 1e308, -1e308, 10**400])
def test_whatever_a_record_says_it_took_has_words_of_bounded_length(seconds):
    assert len(format_duration(seconds)) < 40
    assert len(format_clock(seconds)) < 40


@pytest.mark.parametrize(
    ("thought", "opens"),
    [("One line.", False), ("One line. And more.", True), ("A `word` of code.", True)],
)
def test_a_thought_that_its_line_shows_whole_does_not_open(begun, thought, opens):
    begun.think(thought, "t")
    panel = page(RunView().extend(begun.log)).sections[-1].child
    node = panel.steps[-1].child
    assert isinstance(node, nodes.Fold) is opens
    assert thought.partition(".")[0].replace("`", "") in draw(node)


def test_only_a_long_gist_of_a_result_is_cut_in_a_narrow_page(begun):
    begun.tool("k", "ask", {"of": "x"}, content="short")
    assert theme.RIGHT_CUT not in make_bundle(begun.log)["text/html"]
    begun.tool("l", "ask", {"of": "x"}, content="a result that takes most of a line")
    drawn = make_bundle(begun.log)["text/html"]
    assert f'{theme.ENDS}">a result that takes' in drawn
    assert drawn.count(theme.RIGHT_CUT) == 1


def test_the_table_at_the_end_of_code_is_in_line_with_the_body_of_its_call(begun):
    shown = {"text/html": "<table><tr><td>1</td></tr></table>", "text/plain": "1"}
    begun.tool("k", "python", {"code": "df"}, content="1", display=shown)
    assert f"margin:4px 0 0 {theme.INDENT}" in make_bundle(begun.log)["text/html"]


def test_a_question_shows_words_that_wrap_and_code_in_colour(begun):
    args = {"to": "ada", "body": "Dear Ada,\nboth are wrong.", "code": "x = 1"}
    begun.call("k", "send", args)
    begun(e.Approval(call_id="k", stage="requested", args=args))
    view = RunView().extend(begun.log)
    drawn = html.draw_html(page(view, Context(live=True, can_click=True)))
    boxes = re.findall(r'<pre style="([^"]*)"[^>]*>(.*?)</pre>', drawn, re.DOTALL)
    assert [("white-space:pre-wrap" in css, "<span" in text) for css, text in boxes] == [
        (True, False),
        (False, True),
    ]
    assert boxes[0][1] == args["body"]


def test_a_narrow_header_keeps_the_clock_and_drops_the_other_figures(begun):
    begun(e.Metric(turn=2, total=e.Counts(input=1900, output=212)))
    row = header.card(RunView().extend(begun.log), Context(now=begun.now + 14, live=True))
    assert [(t.text, t.now) for t in row.right] == [("0:14", False), (" · 1.9k in · 212 out", True)]
    assert [t.text.strip() for t in row.left if t.now] == ["turn 2 of 12"]
    begun(e.End())
    row = header.card(RunView().extend(begun.log), Context())
    assert not any(t.now for t in (*row.left, *row.right))
