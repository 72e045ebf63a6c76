"""The run as streamed text."""

from __future__ import annotations

import pytest
from helpers.pictures import attached, png

from agent_nb import events as e
from agent_nb.view.draw.terminal import TextPainter
from agent_nb.view.state.fold import RunView


def printed(seen: list[e.Event], *, every: int = 1, thoughts: str = "collapse") -> str:
    out: list[str] = []
    painter, view = TextPainter(out.append, thoughts=thoughts), RunView()
    for number, event in enumerate(seen):
        view.apply(event)
        if number % every == 0:
            painter.paint(view, event.ts)
    painter.paint(view, None)
    return "".join(out)


@pytest.mark.parametrize("every", [2, 5, 50, 100_000])
def test_the_text_does_not_depend_on_how_often_it_is_painted(rich, every):
    assert printed(rich.seen, every=every) == printed(rich.seen)


def test_the_answer_streams_letter_by_letter(begun):
    out: list[str] = []
    painter, view = TextPainter(out.append), RunView().extend(begun.seen)
    painter.paint(view, 0.0)
    for letter in "abc":
        view.apply(e.Delta(of="respond", block="r", text=letter))
        painter.paint(view, 0.0)
    assert out[-3:] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("output", "name"), [("[figure 1: 7×3 pixels]\n", "[figure 1"), ("", "[pic")]
)
def test_a_picture_is_named_once(begun, output, name):
    begun.call("k", "plot", {})
    begun(e.Started(call_id="k", name="plot"))
    if output:
        begun(e.Progress(call_id="k", text=output))
    end = e.Result(
        call_id="k",
        name="plot",
        content="[figure 1: 7×3 pixels]\n3",
        attachments=(attached(png(7, 3)),),
    )
    text = printed([*begun.seen, end])
    assert text.count("7×3") == 1
    assert name in text
    assert "    3\n" in text


def test_output_of_parallel_tools_is_not_mixed(begun):
    for call_id in "ab":
        begun.call(call_id, f"tool_{call_id}", {})
    begun(e.Execute(calls=("a", "b")), e.Started(call_id="a"), e.Started(call_id="b"))
    for _ in range(3):
        begun(e.Progress(call_id="b", text="from b\n"), e.Progress(call_id="a", text="from a\n"))
    begun(e.Result(call_id="a", content="1"), e.Result(call_id="b", content="2"), e.End())
    lines = [line.strip() for line in printed(begun.seen).splitlines()]
    assert lines.index("from b") > max(i for i, line in enumerate(lines) if line == "from a")


@pytest.mark.parametrize(
    ("thoughts", "there"), [("show", True), ("collapse", False), ("hide", False)]
)
def test_thoughts_are_printed_as_asked(begun, thoughts, there):
    begun.think("First this.\nThen the details.", "t")
    assert ("Then the details." in printed(begun.seen, thoughts=thoughts)) is there
    assert ("Thought" in printed(begun.seen, thoughts=thoughts)) is (thoughts == "collapse")


def test_a_terminal_gets_no_escape_sequences_of_a_tool(begun):
    begun.call("k", "sh", {})
    begun(
        e.Started(call_id="k"),
        e.Progress(call_id="k", text="\x1b[2Jgone\x1b]0;title\x07\n"),
        e.Result(call_id="k", content="\x1b[31mx"),
    )
    assert "\x1b" not in printed(begun.seen)


def test_a_flood_of_output_repeats_nothing_and_says_what_it_left_out(begun):
    begun.call("k", "sh", {})
    begun(e.Started(call_id="k"), e.Progress(call_id="k", text="first\n" * 1000))
    begun(e.Progress(call_id="k", text="later\n" * 9000 + "last\n"))
    text = printed(begun.seen, every=1)
    assert (text.count("first\n"), text.count("last\n")) == (1000, 1)
    assert text.count("later\n") < 2000
    assert "46,005 characters left out here" in text


def test_an_escape_sequence_that_comes_in_two_pieces_is_not_printed(begun):
    begun.call("k", "sh", {})
    begun(e.Started(call_id="k"))
    for text in ("a\x1b", "[3", "1mred\x1b]0;ti", "tle\x07 end\x1b["):
        begun(e.Progress(call_id="k", text=text))
    text = printed([*begun.seen, e.Result(call_id="k")], every=1)
    assert "    ared end⟨U+001B⟩[\n" in text


@pytest.mark.parametrize("begin", ["]", "P", "X", "^", "_"])
@pytest.mark.parametrize("end", ["\x1b\\", "\x07"])
def test_a_string_for_the_terminal_is_never_printed_wherever_cut(begun, begin, end):
    """Each character comes as a piece of its own, which cuts the sequence everywhere."""
    begun.call("k", "sh", {})
    begun(e.Started(call_id="k"))
    for letter in f"a\x1b{begin}{'payload' * 40}{end}b":
        begun(e.Progress(call_id="k", text=letter))
    text = printed([*begun.seen, e.Result(call_id="k")], every=1)
    assert "    ab\n" in text
    assert "payl" not in text


def test_no_name_of_a_model_or_status_reaches_the_terminal_as_a_sequence():
    log = [
        e.RunStart(model="\x1b[2Jgone"),
        e.Call(call_id="k", name="\x1b[1m", args={"\x1b[2m": "\x1b[3m"}),
        e.Progress(call_id="k", fraction=0.5, message="\x1b[4m"),
        e.Result(call_id="k", status="\x1b[5m"),
    ]
    text = printed(log)
    assert text.startswith("● ⟨U+001B⟩[2Jgone\n")
    assert "\x1b" not in text


def test_steps_answers_and_the_end_are_separated(begun):
    begun.tool("k1", "look", {})
    begun.answer("First.", "r1")
    begun.tool("k2", "look", {})
    begun.answer("Last.", "r2")
    begun(e.End())
    parts = printed(begun.seen).split("\n\n")
    assert [part.split("\n")[0].split()[0] for part in parts] == ["●", "First.", "ƒ", "Last.", "✓"]


def test_a_text_that_is_replaced_is_printed_from_its_beginning(begun):
    begun.answer("I know", "r")
    begun(e.Respond(content="I don't know", extra={"loom": {"derived": True}}), e.End())
    assert "I know\nI don't know\n" in printed(begun.seen)
