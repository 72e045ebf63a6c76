"""Recorded runs as one HTML page that needs nothing else: no kernel, no front end, no network.

Why: a run is mailed, printed, put on a server; what a notebook shows beside the cards (the plots
that the run's code displayed) and what its front end does (typeset formulas) has to be in the page.

Rules
- Nothing on the page is fetched or runs, and its content security policy says so to the browser.
- What a cell displays belongs to the run whose card stands above it; it is bounded and sanitised as
  in a card.
- A file that cannot be read is as if there were no plots.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ...agent.run import Run
from ...errors import UsageError
from ...record.ipynb import ENDING
from ...record.record import KEY, MIME
from ...view import values
from ...view.bundle import bundle
from ...view.draw import html
from ...view.format import plural
from ...view.nodes import Image, Node, Page, Row, Section, Stack, T

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title></head>
<body style="margin:24px auto;max-width:900px;padding:0 16px;font-family:system-ui,sans-serif">
{body}</body>
</html>
"""
# what is more than a line of text
SHOWN = ("image/svg+xml", *values.IMAGES, "text/html", "text/markdown", "text/latex")
SVG = "image/svg+xml"
DISPLAYED = "Displayed in the cell"
LARGEST = 30_000_000  # characters of all that is displayed beside the cards


def page(runs: Sequence[Run]) -> str:
    """Return the page of some runs."""
    room = LARGEST
    parts = []
    with html.typeset():
        for run in runs:
            nodes, room = _bounded(displayed(run), room)
            parts.append(
                f"{bundle(run.log)['text/html']}\n{html.draw(nodes) if nodes is not None else ''}"
            )
    return PAGE.format(title=escape(_title(runs)), body="".join(parts))


def _title(runs: Sequence[Run]) -> str:
    names = dict.fromkeys(os.path.basename(run.notebook) for run in runs if run.notebook)
    return f"Agent runs: {', '.join(names)}" if names else "Agent runs"


def displayed(run: Run) -> list[Mapping[str, Any]]:
    """Return the mime bundles that stand below a run's card in the notebook's file: what its code
    displayed.
    """
    return list(_below(run)) if run.cell and run.notebook.endswith(ENDING) else []


def _below(run: Run) -> Iterator[Mapping[str, Any]]:
    card = ""
    for output in _outputs(run.notebook, run.cell):
        data, metadata = output.get("data"), output.get("metadata")
        data, metadata = (
            data if isinstance(data, dict) else {},
            metadata if isinstance(metadata, dict) else {},
        )
        if MIME in data or KEY in metadata:
            card = _run_of(data.get(MIME), metadata.get(KEY)) or card
        elif card == run.id and any(mime in data for mime in SHOWN):
            yield {
                mime: "".join(value) if isinstance(value, list) else value
                for mime, value in data.items()
            }


def _run_of(record: Any, numbers: Any) -> str:
    """Return the id of the run that an output of ours shows."""
    found = (numbers.get("run") if isinstance(numbers, dict) else "") or (
        record.get("id") if isinstance(record, dict) else ""
    )
    return str(found or "")


def _outputs(path: str, cell: str) -> list[dict[str, Any]]:
    from ...record.ipynb import load

    try:
        cells = load(path)["cells"]
    except UsageError:
        return []
    listed = next(
        (c.get("outputs") for c in cells if isinstance(c, dict) and c.get("id") == cell), None
    )
    return [o for o in listed if isinstance(o, dict)] if isinstance(listed, list) else []


def _bounded(bundles: Sequence[Mapping[str, Any]], room: int) -> tuple[Node | None, int]:
    """Return what was displayed as nodes, as far as there is room, and the room that is left."""
    nodes: list[Node] = []
    left_out = 0
    for data in bundles:
        size = sum(len(str(value)) for value in data.values())
        made = _nodes(dict(data)) if size <= room else ()
        room -= size if made else 0
        left_out += not made
        nodes += made
    if left_out:
        nodes.append(Row((T(f"{plural(left_out, 'more output')} in the notebook", tone="muted"),)))
    if not nodes:
        return None, room
    return Page(
        DISPLAYED, (Section("displayed", Stack((Row((T(DISPLAYED, tone="muted"),)), *nodes))),)
    ), room


def _nodes(data: dict[str, Any]) -> tuple[Node, ...]:
    svg = data.get(SVG)
    if (
        isinstance(svg, str)
        and svg.strip()
        and len(svg) <= values.LARGEST_IMAGE
        and not any(mime in data for mime in values.IMAGES)
    ):
        # an image runs no script
        return (Image(SVG, base64.b64encode(svg.encode("utf-8", "replace")).decode(), "drawing"),)
    return values.nodes(
        None, {mime: value for mime, value in data.items() if mime in SHOWN or mime == "text/plain"}
    )
