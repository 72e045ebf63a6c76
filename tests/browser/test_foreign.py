"""A run of another system in a real JupyterLab: its cards while it goes on, its plan, and Stop."""

from __future__ import annotations

import json

import pytest
from nbformat.v4 import new_output

from agent_nb.codecs.convert import decode
from agent_nb.view.bundle import make_bundle

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

FRAMES = [
    {"type": "run_start", "message": "Make 24 from 4, 7, 8 and 8.", "agent": "tot"},
    {
        "type": "tot_expand",
        "candidates": ["Reach 6, then multiply by 4", "Divide 8 by 4", "Add all four"],
    },
    {"type": "tot_evaluate", "chosen": 1, "scores": [0.72, 0.78, 0.15]},
    {"type": "tot_expand", "candidates": ["2 x 7 + 8 = 22", "2 x 8 + 7 = 23"]},
    {"type": "tot_evaluate", "chosen": 1, "scores": [0.1, 0.2]},
    {"type": "tot_backtrack", "reason": "23 is one short", "to_depth": 0},
    {"type": "tot_evaluate", "chosen": 0, "scores": [0.91, 0.2, 0.1]},
    {
        "type": "got_plan",
        "node_count": 3,
        "edge_count": 2,
        "node_ids": ["compute", "compare", "explain"],
    },
    {"type": "got_node_start", "id": "compute"},
    {"type": "got_node_complete", "id": "compute", "result_summary": "24.0"},
    {"type": "got_node_start", "id": "compare"},
    {
        "type": "tool_call",
        "call_id": "c1",
        "name": "calc",
        "arguments": {"expression": "(7 - 8 / 8) * 4"},
    },
    {"type": "tool_start", "call_id": "c1", "name": "calc"},
]
END = [
    {"type": "tool_end", "call_id": "c1", "name": "calc", "result": "24.0", "is_error": False},
    {"reply": "(7 - 8 / 8) x 4 = **24**."},
]


def lines(frames, first=1):
    return "".join(
        json.dumps({"session_id": "s", "event_id": n, **frame}) + "\n"
        for n, frame in enumerate(frames, first)
    )


@pytest.fixture(scope="module")
def notebook(opened):
    """A notebook in JupyterLab."""
    made = opened("lab", cells=("%load_ext agent_nb",))
    made.start(0)
    made.wait(0)
    yield made
    made.close()


def test_a_run_is_followed_while_its_file_is_written(notebook):
    path = notebook.server.root / "live.ndjson"
    path.write_text(lines(FRAMES))
    cell = notebook.begin("%%agent --from live.ndjson --follow\n")
    notebook.sees(cell, "23 is one short")
    notebook.sees(cell, "running calc")
    assert "imported from live.ndjson (Loom frames)" in notebook.output(cell).inner_text()
    notebook.shot("foreign-live")
    with path.open("a") as file:
        file.write(lines(END, len(FRAMES) + 1))
    notebook.wait(cell)
    notebook.sees(cell, "✓ done")
    assert notebook.value("[_agent.status, _agent.answer]") == ["ok", "(7 - 8 / 8) x 4 = **24**."]
    notebook.shot("foreign-done-light")


def test_the_tree_keeps_its_shape_in_a_notebook_that_is_not_trusted(opened):
    shown = new_output("display_data", data=make_bundle(decode(lines(FRAMES), "loom")))
    foreign = opened("lab", cells=("x",), outputs={0: [shown]})
    foreign.sees(0, "23 is one short")
    marks = "e => [...e.querySelectorAll('ul')].map(u => getComputedStyle(u).listStyleType + ' ' + getComputedStyle(u).paddingLeft)"
    assert foreign.output(0).evaluate(marks) == ["none 0px", "none 14px", "none 0px"]
    meters = "e => [...e.querySelectorAll('li span')].filter(s => s.style.width.endsWith('%')).map(s => s.style.width)"
    assert foreign.output(0).evaluate(meters) == ["91%", "20%", "10%", "20%", "10%"]
    foreign.theme("JupyterLab Dark")
    foreign.shot("foreign-dark")
    foreign.theme("JupyterLab Light")
    foreign.close()


def test_stop_ends_the_following_and_keeps_what_came(notebook):
    path = notebook.server.root / "stopped.ndjson"
    path.write_text(lines(FRAMES))
    cell = notebook.begin("%%agent --from stopped.ndjson --follow\n")
    notebook.sees(cell, "running calc")
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)
    notebook.sees(cell, "The viewer stopped following.")
    assert notebook.value("[_agent.status, [e.status for e in _agent.log.of('result')]]") == [
        "interrupted",
        ["cancelled"],
    ]
    assert notebook.errors() == []
