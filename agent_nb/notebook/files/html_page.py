"""Recorded runs as one self-contained HTML page: no kernel, no front end, no network.

Why: runs are mailed, printed, put on a server. Like a front end, the page also typesets formulas
and shows what the code of a cell displayed, such as plots. Nothing on it is fetched or runs; its
content security policy enforces that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ...agent import Run
from ...errors import UsageError
from ...record import (
    METADATA_KEY,
    NOTEBOOK_SUFFIX,
    RECORD_MIME,
    Output,
    RunNumbers,
    cell_id,
    list_cells,
    list_outputs,
    load_notebook,
    metadata_of,
    with_ids,
)
from ...view import (
    DISPLAY_TYPES,
    Node,
    Page,
    Row,
    Section,
    Stack,
    T,
    count_noun,
    display_nodes,
    draw_html,
    make_bundle,
)
from ...wire import as_dict

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>td:not([style]) {{text-align:right; padding:0 6px}}</style>
<title>{title}</title></head>
<body style="margin:24px auto;max-width:900px;padding:0 16px;font-family:system-ui,sans-serif">
{body}</body>
</html>
"""
DISPLAYED = "Displayed in the cell"
MOST_CHARACTERS = 30_000_000  # of everything displayed beside the cards


def render_page(runs: Sequence[Run]) -> str:
    """Return the HTML of one page: the card of each run, and below it what its code displayed."""
    room = MOST_CHARACTERS  # that are left
    parts = []
    for run in runs:
        nodes, room = _draw_displays(find_displays(run), room)
        below = draw_html(nodes, typeset=True) if nodes is not None else ""
        parts.append(f"{make_bundle(run.log, typeset=True)['text/html']}\n{below}")
    names = dict.fromkeys(os.path.basename(run.notebook) for run in runs if run.notebook)
    title = f"Agent runs: {', '.join(names)}" if names else "Agent runs"
    return PAGE.format(title=escape(title), body="".join(parts))


def find_displays(run: Run) -> Iterator[Mapping[str, Any]]:
    """Yield what a run's code displayed: the mime bundles between its card and the next one.

    A run of an event file has none, nor has one of a notebook that cannot be read.
    """
    if not run.cell or not run.notebook.endswith(NOTEBOOK_SUFFIX):
        return
    card = ""  # the id of the run whose card was seen last
    for output in _read_outputs(run.notebook, run.cell):
        data = as_dict(output.get("data"))
        if RECORD_MIME in data or METADATA_KEY in metadata_of(output):
            record = as_dict(data.get(RECORD_MIME))
            # a card names its run in its numbers or its record, a part of a divided page as PART
            numbers = RunNumbers.of(output)
            run_id = numbers.get("run") or record.get("id") or numbers.get(RunNumbers.PART)
            card = str(run_id or card)
        elif card == run.id and any(mime in data for mime in DISPLAY_TYPES):
            # the file holds a text as a list of lines; JSON may be a list itself
            in_lines = [m for m in data if isinstance(data[m], list) and not m.endswith("json")]
            yield {**data, **{mime: "".join(map(str, data[mime])) for mime in in_lines}}


def _read_outputs(path: str, cell: str) -> list[Output]:
    try:
        cells_of_file = list_cells(with_ids(load_notebook(path)))
    except UsageError:
        return []
    return next((list_outputs(c) for c in cells_of_file if cell_id(c) == cell), [])


def _draw_displays(bundles: Iterable[Mapping[str, Any]], room: int) -> tuple[Node | None, int]:
    """Return displayed bundles as a node, and how much of `room` (characters) they leave."""
    nodes: list[Node] = []
    left_out = 0
    for data in bundles:
        size = sum(len(str(value)) for value in data.values())
        drawn = display_nodes(dict(data)) if size <= room else ()
        if drawn:
            nodes += drawn
            room -= size
        else:
            left_out += 1
    if left_out:
        remark = f"{count_noun(left_out, 'more output')} in the notebook"
        nodes.append(Row((T(remark, tone="muted"),)))
    if not nodes:
        return None, room
    section = Section("displayed", Stack((Row((T(DISPLAYED, tone="muted"),)), *nodes)))
    return Page(DISPLAYED, (section,)), room
