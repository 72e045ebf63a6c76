"""A pytest plug-in: `pytest --agent-nb examples/` runs `jupyter agent-nb test` on notebooks.

Rules
- Other plug-ins that execute notebooks (nbmake, nbval) start kernels that do not know the file, and
  find no records. So `AGENT_NB_NOTEBOOK` (`Launch.NOTEBOOK`) names the file during every test of a
  notebook, also without `--agent-nb`, unless the user has set this environment variable.
- Our modules are imported in functions: pytest loads this file in every project.
"""

from __future__ import annotations

import os
from argparse import ArgumentTypeError
from collections.abc import Generator, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ENDING = ".ipynb"
UNTESTED_ENDINGS = (".run.ipynb", "-checkpoint.ipynb")  # executed copies, Jupyter's checkpoints


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, which all begin with `--agent-nb`."""
    group = parser.getgroup("agent-nb", "notebooks with %%agent cells")
    flag = partial(group.addoption, action="store_true")
    flag("--agent-nb", help="replay notebooks as tests")
    flag("--agent-nb-trust-record", help="let code of records run again that you have not signed")
    flag("--agent-nb-trust-folder", help="let the policies of the notebooks' folders allow calls")
    group.addoption(
        "--agent-nb-signers",
        default="",
        metavar="FILE",
        help="trust what these people have signed, too (an OpenSSH allowed_signers file)",
    )
    flag(
        "--agent-nb-strict-tools",
        help="fail where a tool changed whose result came from the record",
    )
    group.addoption(
        "--agent-nb-timeout", type=_parse_timeout, metavar="S", help="seconds a cell may take"
    )


def _parse_timeout(text: str) -> float:
    if 0 < float(text) < float("inf"):
        return float(text)
    raise ArgumentTypeError("it must be more than 0, and finite")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> NotebookFile | None:
    """Return a notebook to be tested, None for other files and without `--agent-nb`."""
    is_tested = file_path.suffix == ENDING and not file_path.name.endswith(UNTESTED_ENDINGS)
    if not is_tested or not parent.config.getoption("--agent-nb"):
        return None
    file: NotebookFile = NotebookFile.from_parent(parent, path=file_path)  # untyped in pytest
    return file


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Name the notebook in the environment that kernels inherit while its test runs."""
    from ..host import Launch

    if item.path.suffix != ENDING or Launch.NOTEBOOK in os.environ:
        return (yield)
    os.environ[Launch.NOTEBOOK] = str(item.path)
    try:
        return (yield)
    finally:
        del os.environ[Launch.NOTEBOOK]


class NotebookFile(pytest.File):
    """A notebook file, which has one test."""

    def collect(self) -> Iterable[NotebookItem]:
        """Yield the one test of the notebook."""
        yield NotebookItem.from_parent(self, name="replay")


class NotebookItem(pytest.Item):
    """The replay of one notebook."""

    def runtest(self) -> None:
        """Replay the notebook. Raises ReplayFailed, and pytest's Skipped where `test` skips it."""
        from ..errors import UsageError
        from ..record import Signer
        from .notebook_check import CheckOptions, check_notebook

        option = self.config.getoption
        try:
            options = CheckOptions(
                trust=option("--agent-nb-trust-record"),
                trust_folder=option("--agent-nb-trust-folder"),
                timeout=option("--agent-nb-timeout"),
                strict_tools=option("--agent-nb-strict-tools"),
                signers=Signer.load_all(option("--agent-nb-signers")),
            )
            report = check_notebook(self.path, options)
        except UsageError as fault:
            raise ReplayFailed(str(fault)) from None
        if not report.ok:
            raise ReplayFailed(str(report))
        if report.skipped:
            pytest.skip(report.skipped)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the report instead of a traceback through our code."""
        if isinstance(excinfo.value, ReplayFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return (file, line, title) of the test for pytest's reports."""
        return self.path, 0, f"replay of {self.path.name}"


class ReplayFailed(Exception):  # noqa: N818  (pytest shows the name)
    """A notebook did not replay; the message is the report, or why the test could not begin."""
