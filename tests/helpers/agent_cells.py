"""Agent cells with ids in the shell of this process, and what they have shown."""

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
