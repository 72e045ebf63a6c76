"""Agent cells with ids in the shell of this process, and what they have shown."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from agent_nb.host import launch
from agent_nb.record.record import RECORD_MIME

SECRET = launch.Launch.make_secret()


class Notebook:
    """Cells with ids in the shell of this process, and what they have shown."""

    def __init__(self, shell, run):
        self.shell, self._run = shell, run
        self.parent = {"metadata": {}, "content": {"allow_stdin": False}}
        self.shown = []
        self.displays = set()
        self.deleted = []  # cells that the front end says are gone
        shell.kernel = SimpleNamespace(get_parent=lambda: self.parent)

    def cell(self, body, line="-m model", cell="c1", sent=None, seen=False, **names):
        """Run one agent cell and return its Run. `sent`: what our runner sends, with its proof
        (`proof` overrides it); `seen`: somebody looks on, with a keyboard.
        """
        self.shell.user_ns.update(names)
        proof = {} if sent is None else {"proof": SECRET}
        self.parent["metadata"] = {
            "cellId": cell,
            "deletedCells": self.deleted,
            "agent_nb": {"headless": not seen, **proof, **(sent or {})},
        }
        self.parent["content"] = {"allow_stdin": seen}
        code = self.shell.transform_cell(f"%%agent {line}\n{body}")
        result = self._run(self.shell.run_cell_async(code, transformed_cell=code))
        if result.error_in_exec is not None:
            raise result.error_in_exec
        return self.shell.user_ns["_agent"]

    def command(self, line):
        self.parent["metadata"] = {"cellId": "command"}
        self.shell.run_line_magic("agent", line)

    def restart(self):
        """Forget what a kernel forgets."""
        self.shell.magics_manager.registry["AgentMagics"]._session = None

    @property
    def last(self):
        """The bundle that stayed in the last cell, and its metadata."""
        return self.shown[-1]

    @property
    def record(self):
        return self.last[0][RECORD_MIME]


@pytest.fixture
def nb(loaded, run, monkeypatch, tmp_path):
    from agent_nb.notebook.cell import display, publish, run_live_button

    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr(launch, "LAUNCH", launch.Launch({launch.Launch.PROOF: SECRET}))
    notebook = Notebook(loaded, run)

    def show(data, metadata, transient, update):
        notebook.shown.append((data, metadata))
        notebook.displays.add(transient.get("display_id"))

    monkeypatch.setattr(publish, "publish_display", show)
    monkeypatch.setattr(display, "publish_display", show)
    monkeypatch.setattr(run_live_button, "publish_display", show)
    yield notebook
    del loaded.kernel


@pytest.fixture
def notebook(nb, tmp_path, monkeypatch):
    """The cells of `nb`, and a way to run plain ones; `save` writes cells to the file."""
    from agent_nb.notebook.cell import ran_cells

    history = nb.shell.history_manager
    ran_cells.uninstall_history(nb.shell)
    for kept in (history.input_hist_raw, history.input_hist_parsed):
        kept[:] = [""]
    for name in ("outputs", "exceptions", "output_hist_reprs"):  # versions of IPython differ
        getattr(history, name, {}).clear()
    nb.shell.execution_count = 1
    ran_cells.install_history(nb.shell)

    def plain(code, cell="", tags=None):
        metadata = {"cellId": cell} if cell else {}
        nb.parent["metadata"] = metadata | ({"tags": tags} if tags else {})

        async def run():
            return await nb.shell.run_cell_async(
                code, store_history=True, transformed_cell=nb.shell.transform_cell(code)
            )

        result = asyncio.run(run())
        nb.shell.events.trigger("post_execute")
        nb.shell.events.trigger("post_run_cell", result)
        return result

    def save(*cells):
        made = [
            {
                "id": cell,
                "cell_type": "code",
                "source": source,
                "metadata": {"tags": tags},
                "outputs": [],
                "execution_count": None,
            }
            for cell, source, *tags in cells
        ]
        path = tmp_path / "n.ipynb"
        path.write_text(
            json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        )
        monkeypatch.setenv("JPY_SESSION_NAME", str(path))

    nb.plain, nb.save = plain, save
    return nb
