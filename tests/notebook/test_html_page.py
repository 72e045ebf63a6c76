"""`export --to html`: one page with plots and formulas that fetches nothing."""

import base64
import json
import re

import pytest

from agent_nb import Run
from agent_nb.cli.main import main
from agent_nb.events import Call, End, Respond, Result, RunStart, User
from agent_nb.events.log import EventLog
from agent_nb.notebook.files import html_page as pages
from agent_nb.notebook.files.html_page import find_displays, render_page
from agent_nb.record.record import METADATA_KEY, RECORD_MIME, Provenance, run_record
from agent_nb.rows.recorded_runs import runs

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"plot" * 20).decode()
OTHER = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"other" * 20).decode()
SVG = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script><circle r="4"/></svg>'


def record(name, answer="It is $x^2$.", display=None):
    times = iter(range(100))
    log = EventLog(name, clock=lambda: 1_763_760_000.0 + next(times))
    call = {"call_id": "c1", "name": "plot", "turn": 1}
    for event in (
        RunStart(model="m/x"),
        User(content="Draw it."),
        Call(args={}, **call),
        Result(content="", display=display, duration=0.1, **call),
        Respond(content=answer, turn=2),
        End(),
    ):
        log.append(event)
    return run_record(log, Provenance(cell="c1"))


def output(data, **metadata):
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def card(name):
    return output(
        {RECORD_MIME: {"version": 1, "ref": name}, "text/plain": "card"},
        **{METADATA_KEY: {"run": name}},
    )


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook whose cell c1 has these records and outputs; return its path."""

    def notebook(*outputs, records=None, others=()):
        listed = [record("r1")] if records is None else records
        cells = [
            {
                "cell_type": "code",
                "id": "c1",
                "source": "%%agent\nDraw it.",
                "metadata": {},
                "outputs": [*outputs],
                "execution_count": 1,
            },
            {
                "cell_type": "code",
                "id": "c2",
                "source": "plot()",
                "metadata": {},
                "outputs": [*others],
                "execution_count": 2,
            },
        ]
        path = tmp_path / "n.ipynb"
        metadata = {METADATA_KEY: {"version": 1, "runs": {"c1": listed}}}
        path.write_text(
            json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
        )
        return path

    return notebook


def made(path):
    return render_page(list(runs(path)))


def test_a_plot_that_the_code_displayed_is_on_the_page(notebook):
    html = made(notebook(card("r1"), output({"image/png": PNG + "\n", "text/plain": "<Figure>"})))
    assert html.count(f'src="data:image/png;base64,{PNG}"') == 1
    assert "Displayed in the cell" in html
    assert 'alt="&lt;Figure&gt;"' in html


def test_a_plot_that_a_tool_returned_is_on_the_page(notebook):
    html = made(notebook(card("r1"), records=[record("r1", display={"image/png": PNG})]))
    assert html.count(PNG) == 1
    assert "Displayed in the cell" not in html


def test_formulas_are_typeset_without_a_front_end(notebook):
    html = made(notebook(card("r1"), output({"text/latex": r"$\frac{a}{b}$", "text/plain": "a/b"})))
    assert "<msup>" in html
    assert "<mfrac>" in html
    assert "$x^2$" not in html


def test_a_drawing_is_an_image_which_runs_no_script(notebook):
    html = made(notebook(card("r1"), output({"image/svg+xml": [SVG[:20], SVG[20:]]})))
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert base64.b64decode(data).decode() == SVG
    assert "<svg" not in html
    assert "alert" not in html


def test_tables_and_markdown_are_shown_sanitised(notebook):
    table = output(
        {
            "text/html": "<table><tr><td>28.9</td></tr></table><script>alert(1)</script><img src='https://x.test/a.png'>"
        }
    )
    written, forged = (
        {"text/markdown": "# Heading\n![x](https://x.test/b.png)"},
        {"image/png": '"><script>alert(1)</script>'},
    )
    html = made(notebook(card("r1"), table, output(written), output(forged)))
    assert "<td>28.9</td>" in html  # its numbers stand below the headings, as in JupyterLab
    assert "td:not([style]) {text-align:right;" in html.partition("<body")[0]
    assert "Heading</h1>" in html
    assert "<script" not in html
    assert not re.findall(r'src="(?!data:)', html)


def test_the_page_forbids_the_browser_to_fetch_or_run_anything(notebook):
    html = made(notebook(card("r1")))
    assert """content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">""" in html


def test_only_output_below_the_runs_card_counts(notebook):
    plot, other = output({"image/png": PNG}), output({"image/png": OTHER})
    path = notebook(
        other, card("r1"), plot, card("r2"), other, records=[record("r1")], others=[other]
    )
    html = made(path)
    assert html.count(PNG) == 1
    assert OTHER not in html


def test_a_json_list_beside_a_table_is_no_text_in_lines(notebook):
    shown = output({"text/html": ["<b>", "x</b>"], "application/json": [1, 2]})
    [data] = find_displays(runs(notebook(card("r1"), shown))[0])
    assert data == {"text/html": "<b>x</b>", "application/json": [1, 2]}


def test_lines_of_text_are_not_repeated(notebook):
    path = notebook(
        card("r1"),
        output({"text/plain": "just text"}),
        {"output_type": "stream", "name": "stdout", "text": "said"},
    )
    assert list(find_displays(runs(path)[0])) == []


def test_output_too_large_for_the_page_is_counted(notebook, monkeypatch):
    monkeypatch.setattr(pages, "MOST_CHARACTERS", len(PNG) + 10)
    html = made(
        notebook(
            card("r1"),
            output({"image/png": PNG}),
            output({"image/png": OTHER}),
            output({"image/png": OTHER}),
        )
    )
    assert PNG in html
    assert OTHER not in html
    assert "2 more outputs in the notebook" in html


@pytest.mark.parametrize(
    "outputs",
    [
        [None, 5, {}],
        [{"data": [], "metadata": 3}],
        [{"data": {RECORD_MIME: 4}, "metadata": {METADATA_KEY: "x"}}],
    ],
)
def test_a_broken_notebook_becomes_a_page_without_plots(notebook, outputs):
    path = notebook(card("r1"))
    run = runs(path)[0]
    nb = json.loads(path.read_text())
    nb["cells"][0]["outputs"] += outputs
    path.write_text(json.dumps(nb))
    assert "It is" in render_page([run])
    path.write_text("no notebook")
    assert "It is" in render_page([run])
    path.unlink()
    assert "It is" in render_page([run])


def test_a_run_without_a_notebook_has_a_page(notebook):
    run = runs(notebook(card("r1")))[0]
    assert "It is" in render_page([Run(run.log)])


def test_export_writes_the_page(notebook, tmp_path):
    path = notebook(card("r1"), output({"image/png": PNG}))
    assert main(["export", str(path), "-o", str(tmp_path / "page.html")]) == 0
    html = (tmp_path / "page.html").read_text()
    assert PNG in html
    assert "<title>Agent runs: n.ipynb</title>" in html
