"""A pytest plug-in: `pytest --agent-nb examples/` runs `jupyter agent-nb test` on notebooks.

Rules
- Without `--agent-nb` nothing is collected.
- Other plug-ins that execute notebooks (nbmake, nbval) start kernels that do not know their file:
  during such a test the environment names it, so that recorded cells are found. A value that the
  user has set stays.
- One item per notebook; it fails with the report of `test` and is skipped where that skips.
  Checkpoints and executed copies (`.run.ipynb`) are left out.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

ENDING = ".ipynb"
LEFT_OUT = (".run.ipynb", "-checkpoint.ipynb")  # ends of names that are not tested


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("agent-nb", "notebooks with %%agent cells")
    group.addoption("--agent-nb", action="store_true", help="replay notebooks as tests")
    group.addoption(
        "--agent-nb-trust-record",
        action="store_true",
        help="let code of records run again that you have not signed",
    )
    group.addoption(
        "--agent-nb-trust-folder",
        action="store_true",
        help="let the policies of the notebooks' folders allow calls",
    )
    group.addoption(
        "--agent-nb-strict-tools",
        action="store_true",
        help="fail where a tool changed whose result came from the record",
    )
    group.addoption(
        "--agent-nb-timeout", type=float, default=None, metavar="S", help="seconds a cell may take"
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> NotebookFile | None:
    """Collect notebooks."""
    wanted = file_path.suffix == ENDING and not file_path.name.endswith(LEFT_OUT)
    if not wanted or not parent.config.getoption("--agent-nb"):
        return None
    made: NotebookFile = NotebookFile.from_parent(parent, path=file_path)
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Name the notebook in the environment of the kernels that its test starts."""
    from ..host import Launch

    if item.path.suffix != ENDING or Launch.NOTEBOOK in os.environ:
        return (yield)
    os.environ[Launch.NOTEBOOK] = str(item.path)
    try:
        return (yield)
    finally:
        del os.environ[Launch.NOTEBOOK]


class NotebookFile(pytest.File):
    """A notebook: one test."""

    def collect(self) -> Iterable[NotebookItem]:
        """Yield the test."""
        yield NotebookItem.from_parent(self, name="replay")


class NotebookItem(pytest.Item):
    """The replay of one notebook."""

    def runtest(self) -> None:
        """Replay the notebook. Raises ReplayFailed."""
        from ..errors import UsageError
        from .notebook_check import CheckOptions, check_notebook

        option = self.config.getoption
        options = CheckOptions(
            trust=option("--agent-nb-trust-record"),
            trust_folder=option("--agent-nb-trust-folder"),
            timeout=option("--agent-nb-timeout"),
            strict_tools=option("--agent-nb-strict-tools"),
        )
        try:
            report = check_notebook(self.path, options)
        except UsageError as fault:
            raise ReplayFailed(str(fault)) from None
        if not report.ok:
            raise ReplayFailed(str(report))
        if report.skipped:
            pytest.skip(report.skipped)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the report instead of a traceback through our code."""
        return (
            str(excinfo.value)
            if isinstance(excinfo.value, ReplayFailed)
            else super().repr_failure(excinfo)
        )

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the test for reports."""
        return self.path, 0, f"replay of {self.path.name}"


class ReplayFailed(Exception):  # noqa: N818  (pytest shows the name)
    """A notebook did not replay; the message is the report."""
