"""The card of a running call: progress of any shape, code, and what remains of both."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_nb import events as e
from agent_nb.view import nodes
from agent_nb.view.bundle import make_bundle
from agent_nb.view.cards import base
from agent_nb.view.cards.base import Context
from agent_nb.view.draw.terminal import TextPainter
from agent_nb.view.draw.text import draw
from agent_nb.view.layout import page
from agent_nb.view.state.calls import LONGEST_DATA
from agent_nb.view.state.fold import RunView

CODE = "total = 0\nfor n in range(10):\n    total += n\nprint(total)"
DIFF = "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-y = 2\n+y = 3\n"


def running(tape: Any, name: str = "job", args: dict[str, Any] | None = None) -> None:
    tape.call("k", name, args or {})
    tape(e.Started(call_id="k", name=name))


def reports(tape: Any, *data: Any) -> None:
    tape(
        *(
            e.Progress(
                call_id="k", **({"data": d} if not isinstance(d, dict) or "_" not in d else d["_"])
            )
            for d in data
        )
    )


def shown(tape: Any) -> list[nodes.Node]:
    """Return the nodes of the call's card below its first line."""
    made = page(RunView().extend(tape.seen), Context(live=True, now=tape.now))
    panel = next(s.child for s in made.sections if isinstance(s.child, nodes.Panel))
    card = panel.steps[-1].child
    assert isinstance(card, nodes.Fold)
    return list(card.body)


def bars(tape: Any) -> list[tuple[float | None, str]]:
    return [(n.fraction, n.label) for n in shown(tape) if isinstance(n, nodes.Bar)]


def output(tape: Any) -> str:
    return "".join(n.text for n in shown(tape) if isinstance(n, nodes.Pre))


SHAPES: dict[str, tuple[list[Any], str, list[tuple[float | None, str]]]] = {
    "chunks of stdout": (
        [
            {"subtype": "stdout_chunk", "content": "a\n"},
            {"subtype": "stderr_chunk", "content": "b\n"},
        ],
        "a\nb",
        [],
    ),
    "a chunk with more": ([{"subtype": "stdout_chunk", "content": "a\n", "pid": 3}], "a", []),
    "strings": (["Hello, ", "how can I"], "Hello, how can I", []),
    "a percentage": ([{"subtype": "transfer_progress", "percent": 65}], "", [(0.65, "65 %")]),
    "a percentage with more": (
        [{"percent": 65, "file": "a.bin", "message": "sending"}],
        "",
        [(0.65, "65 % · sending · file=a.bin")],
    ),
    "counts": (
        [{"done": 6000, "total": 18000, "unit": "rows"}],
        "",
        [(1 / 3, "33 % · 6,000 of 18,000 rows")],
    ),
    "counts with more": (
        [{"done": 1, "total": 4, "file": "a"}],
        "",
        [(0.25, "25 % · 1 of 4 · file=a")],
    ),
    "an object": (
        [{"page": "/0.html", "links": [0, 1]}],
        '{"page": "/0.html", "links": [0, 1]}',
        [],
    ),
    "a list, a number and nothing": ([[1, 2], 7, False], "[1, 2]\n7\nfalse", []),
    "an object with a message": (
        [{"message": "at it", "page": 3}],
        '{"message": "at it", "page": 3}',
        [],
    ),
}


@pytest.mark.parametrize(("data", "text", "drawn"), SHAPES.values(), ids=SHAPES)
def test_progress_of_any_shape_is_drawn(data, text, drawn, begun):
    running(begun)
    reports(begun, *data)
    assert (output(begun), bars(begun)) == (text, drawn)


def test_a_message_alone_is_a_line(begun):
    running(begun)
    reports(begun, {"message": "loading"})
    assert [draw(n) for n in shown(begun)] == ["loading"]


def test_a_line_of_json_begins_a_line_and_is_bounded(begun):
    running(begun)
    begun(e.Progress(call_id="k", text="no end"))
    reports(begun, {"x": "y" * 10_000})
    first, second = output(begun).split("\n")
    assert first == "no end"
    assert len(second) < LONGEST_DATA + 40
    assert second.endswith("9,609 more characters")


def test_all_shapes_stay_in_the_output_when_the_call_has_ended(begun):
    running(begun)
    reports(begun, {"page": 1}, {"subtype": "stdout_chunk", "content": "said\n"})
    begun(e.Result(call_id="k", content="x"), e.End())
    for form in make_bundle(begun.log).values():
        assert "said" in form
        assert "page" in form


@pytest.mark.parametrize(
    ("said", "shown"), [(1e308, 1.0), (-1e308, 0.0), (math.inf, 1.0), (math.nan, 1.0)]
)
def test_a_bar_stays_between_its_ends_whatever_a_record_says(said, shown):
    view = RunView()
    for event in (e.RunStart(), e.Call(call_id="k"), e.Progress(call_id="k", fraction=said)):
        view.apply(event)
    (card,) = (card for card in view.cards if card.kind == "call")
    assert card.fraction == shown


def test_old_counts_are_dropped_when_another_bar_moves(begun):
    running(begun)
    reports(begun, {"done": 1, "total": 4})
    begun(e.Progress(call_id="k", fraction=0.5))
    assert bars(begun) == [(0.5, "50 %")]


def test_hostile_data_is_shown_as_text(begun, hazards):
    running(begun)
    reports(
        begun, {"<script>": "<img src=x onerror=alert(1)>\u202e"}, {"percent": 5, "<b>": "\x1b[2J"}
    )
    begun(e.Result(call_id="k", content="x"))
    assert hazards(make_bundle(begun.log)["text/html"]) == []


# A card of another package.


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str], None]]:
    """Install a package with one card: `installed(code, entry)`."""

    def install(code: str, entry: str) -> None:
        folder = tmp_path / "card_pkg-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: card-pkg\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[agent_nb.cards]\n{entry}\n")
        (tmp_path / "my_package").mkdir()
        (tmp_path / "my_package" / "__init__.py").touch()
        (tmp_path / "my_package" / "cards.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))
        base._names_of_parts.cache_clear()

    yield install
    base._names_of_parts.cache_clear()
    for name in ("my_package", "my_package.cards"):
        sys.modules.pop(name, None)


def example() -> tuple[str, str]:
    """Return the code and the entry point of the example in the documentation of cards."""
    text = textwrap.dedent(str(base.__doc__).split("# my_package/cards.py")[1].split("\nRules")[0])
    code, config = text.split("# pyproject.toml")
    return textwrap.dedent(code), re.findall(r'^\s*(progress-\w+) = "(.*)"', config, re.MULTILINE)[
        0
    ]


def test_an_installed_card_draws_the_progress_of_its_tool_as_documented(installed, begun):
    code, (name, target) = example()
    installed(code, f"{name} = {target}")
    running(begun, "train")
    assert shown(begun) == []
    reports(begun, {"epoch": 3})
    assert bars(begun) == [(0.3, "epoch 3 of 10")]
    assert output(begun) == ""


def test_an_installed_card_draws_no_other_tool_and_no_result(installed, begun):
    code, (name, target) = example()
    installed(code, f"{name} = {target}")
    running(begun, "other")
    reports(begun, {"epoch": 3})
    assert output(begun) == '{"epoch": 3}'
    begun(e.Result(call_id="k", content="result of it"), e.End())
    assert "result of it" in make_bundle(begun.log)["text/plain"]


def test_a_failing_installed_card_is_named_in_its_place(installed, begun):
    installed(
        "def epochs(state, context): return 1 / 0\n", "progress-train = my_package.cards:epochs"
    )
    running(begun, "train")
    assert "card-pkg" in draw(shown(begun)[0])


# The code of a call that runs, and the change that was approved.


@pytest.mark.parametrize("status", ["queued", "running", "finished"])
def test_the_code_of_a_call_is_shown_while_it_runs(status, begun):
    begun.call("k", "python", {"code": CODE})
    begun(*([e.Started(call_id="k", name="python")] if status != "queued" else []))
    begun(*([e.Delta(block="k", of="result", text="ok")] if status == "finished" else []))
    assert [n.text for n in shown(begun) if isinstance(n, nodes.Code)] == [CODE]


def test_arguments_shown_in_full_on_the_first_line_are_not_repeated(begun):
    running(begun, "look", {"city": "Ulm"})
    assert shown(begun) == []


def test_a_long_text_that_is_not_code_is_not_coloured(begun):
    running(begun, "ask", {"prompt": "Tell me about Ulm. " * 9})
    assert [type(n) for n in shown(begun)] == [nodes.Pre]


def test_long_arguments_are_shown_too(begun):
    running(begun, "look", {"filter": {"a": [1] * 60}})
    assert [n.value for n in shown(begun) if isinstance(n, nodes.Json)] == [
        {"filter": {"a": [1] * 60}}
    ]


def decided(
    tape: Any, *, args: dict[str, Any] | None = None, decision: str = "allow", by: str = "click"
) -> None:
    given = {"file": "a.py", "content": "y = 3\n"}
    tape.call("k", "write", given)
    tape(e.Approval(call_id="k", stage="requested", args=given, extra={"preview": DIFF}))
    tape(e.Approval(call_id="k", stage="decided", args=args or given, decision=decision, by=by))


def test_the_change_that_was_approved_is_shown_while_the_call_runs(begun):
    decided(begun)
    begun(e.Started(call_id="k", name="write"))
    assert [n.text for n in shown(begun) if isinstance(n, nodes.Diff)] == [DIFF]


def test_a_preview_in_words_hides_no_long_argument(begun):
    args = {"to": "ann@example.org", "body": "All keys:\n" + "secret " * 30}
    begun.call("k", "send", args)
    extra = {"preview": "Mail to ann@example.org"}
    begun(e.Approval(call_id="k", stage="requested", args=args, extra=extra))
    for form in make_bundle(begun.log).values():
        text = re.sub(r"<[^>]+>", "", form)
        assert text.count("secret") >= 30
        assert text.rindex("secret") < text.index("Mail to ann")


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_the_diff_stays_in_the_card_after_the_decision(decision, begun):
    decided(begun, decision=decision)
    begun(
        e.Result(
            call_id="k", name="write", status="ok" if decision == "allow" else "denied", content="x"
        ),
        e.End(),
    )
    for form in make_bundle(begun.log).values():
        assert "-y = 2" in re.sub(r"<[^>]+>", "", form)


def test_the_diff_is_dropped_if_other_arguments_were_approved(begun):
    decided(begun, args={"file": "a.py", "content": "z = 9\n"})
    begun(e.Result(call_id="k", name="write", content="x"), e.End())
    text = make_bundle(begun.log)["text/plain"]
    assert "-y = 2" not in text
    assert "z = 9" in text


# A terminal.


def printed(tape: Any, badge: str = "") -> str:
    out: list[str] = []
    painter, view = TextPainter(out.append), RunView(badge=badge)
    for event in tape.seen:
        view.apply(event)
        painter.paint(view, event.ts)
    painter.paint(view, None)
    return "".join(out)


def code_lines(text: str) -> list[str]:
    return [line.split("│ ", 1)[1] for line in text.splitlines() if "│ " in line]


@pytest.mark.parametrize("by", ["", "policy", "click"])
def test_a_terminal_shows_the_code_of_calls_approved_without_the_keyboard(by, begun):
    begun.call("k", "python", {"code": CODE})
    if by:
        begun(e.Approval(call_id="k", stage="requested", args={"code": CODE}))
        begun(
            e.Approval(call_id="k", stage="decided", args={"code": CODE}, decision="allow", by=by)
        )
    begun(e.Started(call_id="k", name="python"), e.Result(call_id="k", content="45"), e.End())
    assert code_lines(printed(begun)) == CODE.split("\n")


def test_code_shown_by_a_keyboard_question_prints_again_only_in_a_replay(begun):
    decided(begun, by="stdin")
    begun(e.Started(call_id="k", name="write"), e.Result(call_id="k", content="ok"), e.End())
    assert code_lines(printed(begun)) == []
    assert "-y = 2" in code_lines(printed(begun, badge="replayed"))


def test_a_terminal_gets_a_line_for_each_quarter_and_json_as_lines(begun):
    running(begun)
    for n in range(9):
        begun(
            e.Progress(call_id="k", fraction=n / 8, message=f"{n}/8"),
            e.Progress(call_id="k", text=f"step {n}\n"),
        )
    reports(begun, {"page": 1})
    begun(e.Result(call_id="k", content="done"), e.End())
    lines = [line.strip() for line in printed(begun).splitlines()]
    assert [line for line in lines if "%" in line] == ["25 %  2/8", "50 %  4/8", "75 %  6/8"]
    assert lines.index("25 %  2/8") == lines.index("step 2") - 1
    assert '{"page": 1}' in lines


def test_a_result_that_begins_with_the_output_does_not_repeat_it(begun):
    running(begun, "python", {"code": "1"})
    begun(
        e.Progress(call_id="k", text="half way\n"),
        e.Result(call_id="k", content="half way\n45"),
        e.End(),
    )
    assert printed(begun).count("half way") == 1
    assert "    45\n" in printed(begun)
    assert make_bundle(begun.log)["text/plain"].count("half way") == 1


def test_output_before_a_failure_stays(begun):
    running(begun, "python", {"code": "1"})
    trace = "Traceback (most recent call last):\nValueError: no"
    begun(
        e.Progress(call_id="k", text="half way\n"),
        e.Result(call_id="k", status="error", content=f"half way\n{trace}"),
        e.End(),
    )
    for text in (printed(begun), make_bundle(begun.log)["text/plain"]):
        assert text.count("half way") == 1
        assert "ValueError: no" in text


# The header.


def test_the_header_breaks_and_is_not_cut(begun):
    html = make_bundle(begun.log)["text/html"]
    header = html[: html.index(">openai/gpt-5.1")].rpartition("<div")[2]
    assert "overflow-wrap:break-word" in header
    assert "ellipsis" not in header
