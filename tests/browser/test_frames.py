"""A frame of events in a real JupyterLab: one line per row, words flush left, nothing where nothing
is, readable in both themes.
"""

import pytest
from helpers.paths import EXAMPLES

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

EXAMPLE = EXAMPLES / "scripted.ipynb"
SETUP = f"from agent_nb import CALLS, RUNS, TURNS, runs\nrecorded = runs({str(EXAMPLE)!r})"
LINES = """table => [...table.querySelectorAll('td')].map(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return new Set([...range.getClientRects()].map(box => Math.round(box.top))).size;
})"""


@pytest.fixture(scope="module")
def notebook(opened):
    """A notebook that has read recorded runs."""
    made = opened("lab", name="frames", cells=(SETUP,))
    made.start(0)
    made.wait(0)
    return made


@pytest.mark.parametrize(
    "table",
    [
        "recorded[1].to_frame()",
        *(f"recorded.to_frame({name})" for name in ("CALLS", "TURNS", "RUNS")),
    ],
)
def test_a_frame_has_one_line_a_row_and_no_word_for_what_is_missing(notebook, table):
    index = notebook.run(table)
    shown = notebook.output(index).locator("table.agent-nb-frame")
    assert max(shown.evaluate(LINES)) == 1
    assert {"left", "right"} == set(
        shown.locator("td").evaluate_all("cells => cells.map(c => getComputedStyle(c).textAlign)")
    )
    assert not {"NaN", "NaT", "None", "<NA>"} & set(shown.locator("td").all_inner_texts())
    name = "frame-" + "".join(c for c in table.rpartition("(")[2] if c.isalpha()).lower()
    for theme in ("Dark", "Light"):
        notebook.theme(f"JupyterLab {theme}")
        notebook.output(index).scroll_into_view_if_needed()
        notebook.shot(f"{name or 'frame'}{theme}")
