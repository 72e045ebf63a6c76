"""The examples replay from their records without a model, and do not name their machine."""

import json
import re

import pytest
from helpers.lacking import lacking
from helpers.paths import EXAMPLES

from agent_nb.rows.recorded_runs import runs
from agent_nb.runner.notebook_check import CheckOptions, check_notebook

EXAMPLES = sorted(EXAMPLES.glob("[!.]*.ipynb"))
NOTEBOOKS = [p for p in EXAMPLES if not p.name.endswith(".run.ipynb")]
READABLE = {"text/html", "text/plain", "text/markdown"}


@pytest.mark.few("scripted")
@pytest.mark.kernel
@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_an_example_replays_from_its_record(path):
    report = check_notebook(path, CheckOptions(trust=True))
    assert report.ok, str(report)
    if report.skipped:
        lacking(report.skipped)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_agent_cell_of_an_example_has_a_static_output(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    shown = [
        o
        for c in cells
        if "".join(c["source"]).startswith("%%agent")
        for o in c["outputs"]
        if "data" in o
    ]
    charts = [
        o
        for o in shown
        if any(kind.startswith("application/vnd.vega") or "plotly" in kind for kind in o["data"])
    ]
    assert all(o["data"].keys() >= READABLE for o in shown if o not in charts)
    assert all(o["data"].keys() >= {"image/png", "text/plain"} for o in charts)
    assert not any("application/vnd.jupyter.widget-view+json" in o["data"] for o in shown)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_an_example_holds_no_path_of_the_machine(path):
    assert not re.findall(
        r"(?<![\w.])/(?:root|home|work|Users|tmp)/[\w./-]+", path.read_text(encoding="utf-8")
    )


def test_the_quickstart_was_made_by_the_embedded_model_with_every_event():
    (path,) = [p for p in NOTEBOOKS if p.stem == "quickstart"]
    recorded = list(runs(path))
    kinds = {e.type for run in recorded for e in run.log}
    assert {run.log[0].model for run in recorded} == {"local/smollm2"}
    assert kinds >= {"think", "call", "started", "progress", "result", "respond", "metric", "end"}
