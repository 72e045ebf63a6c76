"""nbclient and nbconvert: all scenes in one notebook, executed once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
from helpers.scenes import EVENTS, PREPARE, SCENES, Seen
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook


class Watched(NotebookClient):  # type: ignore[misc]
    """An nbclient that records the pages it receives."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.pages: dict[int, list[str]] = {}

    def process_message(self, message: Any, cell: Any, index: int) -> Any:
        """Record a page."""
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data"):
            self.pages.setdefault(index, []).append(content["data"].get("text/html", ""))
        return super().process_message(message, cell, index)


class Runner:
    """nbclient or nbconvert: all scenes in one notebook, executed once; the endless one is
    interrupted by its time-out.
    """

    def __init__(self, folder: Path, *, convert: bool) -> None:
        self._names = [*SCENES]
        cells = [new_code_cell(PREPARE)]
        for name in self._names:
            cells += [
                new_code_cell(SCENES[name]),
                new_code_cell(f"{EVENTS}; print(json.dumps(sent)); sent.clear()"),
            ]
        cells.append(new_code_cell("_agent"))
        nb = new_notebook(cells=cells)
        resources = {"metadata": {"path": str(folder)}}
        options = {
            "allow_errors": True,
            "interrupt_on_timeout": True,
            "iopub_timeout": 60,
            "timeout_func": lambda cell: 5 if "-m talk" in cell.source else 60,
        }
        self.pages: dict[int, list[str]] = {}
        if convert:
            from nbconvert.preprocessors import ExecutePreprocessor

            ExecutePreprocessor(**options).preprocess(nb, resources)
        else:
            made = Watched(nb, resources=resources, **options)
            made.execute()
            self.pages = made.pages
        path = folder / f"{'converted' if convert else 'executed'}.ipynb"
        nbformat.write(nb, path)
        self.notebook = nbformat.read(path, 4)

    def scene(self, name: str) -> Seen:
        """Return what was seen of a scene."""
        index = 1 + 2 * self._names.index(name)
        seen = self._seen(index)
        events, sent = (
            "".join(o["text"] for o in self.notebook.cells[index + 1].outputs).strip().split("\n")
        )
        seen.events, seen.sent = json.loads(events), json.loads(sent)
        return seen

    def cell(self, code: str) -> Seen:
        """Return what was seen of the last cell, a run."""
        assert self.notebook.cells[-1].source == code
        return self._seen(len(self.notebook.cells) - 1)

    def html(self) -> str:
        """Return the page that nbconvert makes of the notebook."""
        from nbconvert import HTMLExporter

        made, _ = HTMLExporter().from_notebook_node(self.notebook)
        return str(made)

    def _seen(self, index: int) -> Seen:
        outputs = self.notebook.cells[index].outputs
        shown = [
            o["data"] for o in outputs if o["output_type"] in ("display_data", "execute_result")
        ]
        said = "".join(
            o["text"] if o["output_type"] == "stream" else "\n".join(o.get("traceback", ()))
            for o in outputs
        )
        failed = any(o["output_type"] == "error" for o in outputs)
        return Seen(
            shown=dict(shown[-1]) if shown else {},
            streamed=said,
            pages=self.pages.get(index, []),
            failed=failed,
        )
