"""The line of a call, and its code while it is written."""

from __future__ import annotations

import json

import pytest

from agent_nb import events as e
from agent_nb.view import nodes
from agent_nb.view.bundle import make_bundle
from agent_nb.view.call_line import describe_call, find_telling_line
from agent_nb.view.cards.base import Context, draw
from agent_nb.view.draw import html, markdown, text
from agent_nb.view.layout import page
from agent_nb.view.state.fold import RunView

CODE = "import pandas as pd\n\n# clean it\nclean = trips.dropna()\nclean['x'] = 'a'\n"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("\n\n  x = 1\n", "x = 1"),
        (
            "import os\nfrom re import (\n    sub,  # (\n    match,\n)\nsub('a', 'b', c)",
            "sub('a', 'b', c)",
        ),
        ("import os, re", "import os, re"),
        ("# why\n%matplotlib inline\n@cache\ndef f(x):\n    return x", "def f(x):"),
        ("%%time\ntrips.sum()", "trips.sum()"),
        ("%timeit f()", "%timeit f()"),
        ("#!/bin/bash\nset -euo pipefail\nls | wc -l", "ls | wc -l"),
        ("-- all of them\nSELECT * FROM trips\nWHERE x", "SELECT * FROM trips"),
        ("# only\n# comments", "# only"),
        ('"""Says it."""\nrun()', "run()"),
        ('"""Says it,\nand why.\n"""\nimport x\nrun()', "run()"),
        ("'''Has an end\n nowhere", "'''Has an end"),
        (" \n\t", ""),
    ],
)
def test_the_telling_line_of_code_is_the_first_that_does_something(code, line):
    assert find_telling_line(code) == line


@pytest.mark.parametrize(
    ("name", "args", "line"),
    [
        ("python", {"code": CODE}, ("clean = trips.dropna() …", "python", False)),
        ("python", {"code": "trips.info()\n"}, ("trips.info()", "python", True)),
        ("shell", {"command": "ls -l"}, ("ls -l", "bash", True)),
        ("ask", {"sql": "select 1", "database": "x"}, ("select 1", "sql", False)),
        ("find", {"query": "a bike"}, ("a bike", "", True)),
        ("read", {"file": "src/app.py", "lines": 3}, ("src/app.py, lines=3", "", True)),
        ("dig", {"depth": 3, "slow": True}, ("depth=3, slow=true", "", True)),
        ("write", {"content": "a\nb\n", "file": "x.csv"}, ("x.csv, content=a …", "", False)),
        ("researcher", {"prompt": "Find\nout"}, ("Find …", "", False)),
        ("plot", {"columns": ["a", "b"], "of": ""}, ("columns=[a, b], of=", "", True)),
        (
            "edit",
            {"edits": [{"old": "a"}], "how": {"x": 1}},
            ("edits=[1 item], how={1 field}", "", False),
        ),
        ("say", {"text": "word " * 100}, None),
        ("odd", {"code": ["x"], "n": None}, ("code=[x], n=null", "", True)),
        ("none", {}, ("", "", True)),
    ],
)
def test_the_line_of_a_call_says_what_matters_of_its_arguments(name, args, line):
    said = describe_call(name, args)
    if line is None:
        assert said.text.endswith("…")
        assert not said.whole
    else:
        assert said[:3] == line


@pytest.mark.parametrize("whole", [CODE, "trips.info()"])
def test_a_call_has_one_face_from_the_first_letter_to_its_end(begun, whole):
    """At no cut of its arguments does the card show JSON; the line grows, it does not change."""
    raw = json.dumps({"code": whole})
    view = RunView().extend(begun.log)
    for letter in raw:
        view.apply(e.Delta(block="b", of="call", name="python", text=letter))
        shown = text.draw(draw(view.cards[-1], Context(live=True)))
        assert not set('{"\\') & set(shown)
    last = shown.split("\n")[0].removesuffix("○ writing").rstrip()
    view.apply(e.Call(block="b", call_id="k", name="python", args={"code": whole}, raw_args=raw))
    for event in (
        e.Started(call_id="k", name="python"),
        e.Result(call_id="k", name="python", status="ok", content=""),
    ):
        view.apply(event)
        assert text.draw(page(view, Context(live=True))).count(last) == 1


def test_the_last_lines_of_code_are_coloured_while_it_is_written(begun):
    view = RunView().extend(begun.log)
    code = 'text = """\n' + "".join(f"line {n}\n" for n in range(20)) + "for x in y:"
    view.apply(e.Delta(block="b", of="call", name="python", text=json.dumps({"code": code})[:-2]))
    node = draw(view.cards[-1], Context(live=True))
    (block,) = (child for child in node.body if isinstance(child, nodes.Code))
    drawn = html.draw_html(block)
    assert "line 13\n" in drawn
    assert "line 12\n" not in drawn
    assert drawn.count("<span") == 1  # it is inside the text still
    for form in (text, markdown):
        assert "line 13\n" in form.draw(block)
        assert "line 12\n" not in form.draw(block)


@pytest.mark.parametrize("raw", ["print(1)\nprint(2)", "[1, 2", "plain words"])
def test_arguments_that_are_no_object_are_shown_as_they_are_written(begun, raw):
    view = RunView().extend(begun.log)
    view.apply(e.Delta(block="b", of="call", name="free", text=raw))
    assert raw.split("\n")[-1] in text.draw(draw(view.cards[-1], Context(live=True)))


def test_a_text_inside_a_nested_value_is_shown_while_it_is_written(begun):
    view = RunView().extend(begun.log)
    raw = '{"file": "a.py", "edits": [{"old": "x", "new": "def f():\\n    return 1'
    view.apply(e.Delta(block="b", of="call", name="edit", text=raw))
    node = draw(view.cards[-1], Context(live=True))
    (block,) = (child for child in node.body if isinstance(child, nodes.Code))
    assert (block.text, block.language) == ("def f():\n    return 1", "py")


def test_a_call_that_was_cut_off_keeps_its_face(begun):
    begun.seen.append(e.Delta(block="b", of="call", name="python", text='{"code": "x = 1'))
    view = RunView().extend([*begun.seen, e.End(status="interrupted")])
    assert "» python  x = 1   ○ no result" in text.draw(page(view))


def test_code_that_stands_in_the_line_is_not_repeated_below_it(begun):
    begun.tool("k", "python", {"code": "trips.info()"}, content="a\nb")
    begun.tool("l", "python", {"code": "x = 1\nprint(x)"}, content="1")
    drawn = make_bundle(begun.log)["text/plain"]
    assert drawn.count("trips.info()") == 1
    assert "print(x)" in drawn


def test_a_call_that_waits_for_its_place_has_no_bar_any_more(begun):
    begun.call("a", "scan", {})
    begun.call("b", "scan", {})
    begun(e.Execute(calls=("a", "b")), e.Started(call_id="a"), e.Started(call_id="b"))
    begun(e.Progress(call_id="b", fraction=0.6))
    view = RunView().extend(begun.seen)
    assert "60 %" in text.draw(page(view))
    view.apply(e.Delta(of="result", block="b", text="ok"))
    assert "%" not in text.draw(page(view))
