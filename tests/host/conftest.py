"""A project with forged modules: each leaves its name in the file `executed` when somebody imports
it.
"""

import sys
from pathlib import Path

import pytest

from agent_nb.host import imports

MARK = "with open({!r}, 'a') as executed:\n    executed.write({!r} + ' ')\n"


class Project:
    """A working folder as a kernel has it: on `sys.path`, before the installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def forge(self, *names: str, code: str = "") -> None:
        """Put modules there that leave a mark; `a/b` is a module of a package without a file of its
        own.
        """
        for name in names:
            path = self.folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(MARK.format(str(self.folder / "executed"), name) + code)

    @property
    def executed(self) -> list[str]:
        """The forged modules that were executed."""
        path = self.folder / "executed"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project in which this process works; what it imported from there is forgotten
    afterwards.
    """
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    before = dict(sys.modules)
    yield Project(folder)
    for name in [
        n
        for n, module in sys.modules.items()
        if before.get(n) is not module and imports.is_from_project(module)
    ]:
        del sys.modules[name]


@pytest.fixture
def cell():
    """Run code as a notebook's cell does: in `__main__`."""

    def run(code, **names):
        namespace = {"__name__": "__main__", **names}
        exec(compile(code, "<cell>", "exec"), namespace)
        return namespace

    return run
