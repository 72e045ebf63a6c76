"""The python tool: in the kernel through the host, elsewhere in a namespace of the run's own."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agent_nb.tools.base import ToolContext, Update
from agent_nb.tools.capture import OutputCapture
from agent_nb.tools.toolset import Toolset

Run = Callable[..., Any]


def code(*texts: str) -> list[Any]:
    return [("python", {"code": text}) for text in texts]


def test_in_a_notebook_the_host_runs_the_cell(run: Run, host: Any) -> None:
    outcomes, record = run("python", *code("1 + 1"), host=host)
    assert host.cells == ["1 + 1"]
    assert outcomes[0].content == "cell value"
    assert record.of("update") == [Update(text="out\n")]


def test_it_changes_the_kernel_and_has_no_time_limit_of_its_own() -> None:
    tool = Toolset.resolve("python")["python"]
    assert tool.effect == "kernel"
    assert tool.timeout == float("inf")
    assert list(tool.spec.parameters["properties"]) == ["code"]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("1 + 1", 2),
        ("x = 1", "(no value)"),
        ("print('a'); print('b')", "a\nb\n"),
        ("print('a')\n'value'", "a\nvalue"),
        ("import sys; print('e', file=sys.stderr)", "e\n"),
        (
            "import asyncio\nawait asyncio.sleep(0)\nx = [i async for i in agen()] if False else 5\nx",
            5,
        ),
        ("async def f(): return 7\nawait f()", 7),
        ("", "(no value)"),
        ("def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\nf(10)", 55),
    ],
)
def test_output_and_the_last_value_are_the_result(run: Run, text: str, content: Any) -> None:
    outcomes, _ = run("python", *code(text))
    assert (outcomes[0].status, outcomes[0].content) == ("ok", content)


def test_variables_stay_for_the_next_calls_of_the_run_which_come_in_order(run: Run) -> None:
    outcomes, _ = run("python", *code("x = 1", "x += 1", "x"))
    assert outcomes[2].content == 2
    assert run("python", *code("x"))[0][0].content == "NameError: name 'x' is not defined"


def test_output_is_progress_as_it_comes(run: Run) -> None:
    _, record = run("python", *code("print('a')\nprint('b', end='')"))
    assert "".join(u.text for u in record.of("update")) == "a\nb"


def test_an_error_follows_what_was_printed_and_shows_the_codes_own_lines(run: Run) -> None:
    outcomes, _ = run("python", *code("print('before')\ndef f():\n    return 1 / 0\nf()"))
    assert (outcomes[0].status, outcomes[0].content) == (
        "error",
        "before\nZeroDivisionError: division by zero",
    )
    shown = outcomes[0].display["text/plain"]
    assert "return 1 / 0" in shown
    assert "python.py" not in shown


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("x = (", "error", "SyntaxError"),
        ("a\0b", "error", "SyntaxError"),
        ("import sys; sys.exit(3)", "error", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "cancelled", "Stopped"),
        ("(" * 10_000, "error", "Error"),
    ],
)
def test_code_that_fails_in_any_way_is_an_outcome(
    run: Run, text: str, status: str, said: str
) -> None:
    outcomes, _ = run("python", *code(text))
    assert outcomes[0].status == status
    assert said in outcomes[0].content


def test_code_with_an_error_of_syntax_does_not_begin_to_run(run: Run) -> None:
    outcomes, record = run("python", *code("x = 1\nprint('ran')\nyield x", "x"))
    assert "SyntaxError" in outcomes[0].content
    assert outcomes[1].content == "NameError: name 'x' is not defined"
    assert not record.of("update")


@pytest.mark.parametrize("text", ["\u2028", "\x0c", "\x85"])
def test_lines_of_a_traceback_are_those_of_python(run: Run, text: str) -> None:
    outcomes, _ = run("python", *code(f"x = '{text}'\r\ny = 1\r1 / 0"))
    assert "1 / 0" in outcomes[0].display["text/plain"]


def test_long_output_is_bounded_for_the_model_and_whole_as_progress(run: Run) -> None:
    outcomes, record = run("python", *code("for i in range(10_000): print(i)"))
    assert len(outcomes[0].content) < 21_000
    assert "characters left out" in outcomes[0].content
    assert "".join(u.text for u in record.of("update")).splitlines()[-1] == "9999"


def test_only_the_tools_own_context_is_captured() -> None:
    stream = sys.stdout
    said: list[str] = []
    inside, go = threading.Event(), threading.Event()

    def work() -> None:
        with OutputCapture(said.append):
            print("inside")
            inside.set()
            go.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    assert "".join(said) == "inside\n"
    print("outside")
    assert sys.stdout.isatty() is stream.isatty()
    go.set()
    thread.join()
    assert "".join(said) == "inside\n"
    assert sys.stdout is stream


def test_a_stream_stays_in_place_because_print_holds_no_reference_to_it() -> None:
    stream = sys.stdout
    with OutputCapture(lambda text: None):
        assert sys.stdout is stream


def test_prints_of_the_report_are_not_taken_for_output_of_the_code(
    run: Run, record: Any, capsys: Any
) -> None:
    class Printing(record):  # type: ignore[misc]
        def update(self, call_id: str, news: Update) -> None:
            super().update(call_id, news)
            print("report")

    outcomes, kept = run(
        "python",
        *code("import time\nfor i in range(20):\n    print(i)\n    time.sleep(0.001)"),
        report=Printing(),
    )
    assert "report" not in outcomes[0].content
    assert "report" not in "".join(u.text for u in kept.of("update"))
    assert "report" in capsys.readouterr().out


def test_the_function_is_still_a_function() -> None:
    made: Any = Toolset.resolve("python")["python"].invoke
    assert made("2 * 3", ToolContext()).content == 6


def test_the_texts_of_old_code_do_not_pile_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_nb.tools.python._MOST_TEXTS", 2)
    before = {name for name in linecache.cache if name.startswith("<agent code ")}
    run("python", *code(*map(str, range(5))))
    after = {name for name in linecache.cache if name.startswith("<agent code ")}
    assert len(after - before) == 2
