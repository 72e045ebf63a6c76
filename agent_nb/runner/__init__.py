"""Executes notebooks without a front end, for the commands `run` and `test`.

Read `client` first: it executes one notebook. `notebook_check` executes one as a test and finds its
problems, `report` writes them as text, JSON and JUnit XML.

Order: cell_failure, event_relay, execution_options, progress, project, report, same_run,
  shown_pictures, stopping
< kernels, quiet
< cell_client
< client
< cell_problems
< notebook_check
< pytest_plugin
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .client import execute_notebook as execute_notebook
    from .event_relay import Relay as Relay
    from .execution_options import ExecutionOptions as ExecutionOptions
    from .kernels import EarlyKernels as EarlyKernels
    from .kernels import choose_kernel as choose_kernel
    from .notebook_check import CheckOptions as CheckOptions
    from .notebook_check import check_notebook as check_notebook
    from .notebook_check import choose_test_kernel as choose_test_kernel
    from .progress import Progress as Progress
    from .report import Problem as Problem
    from .report import Report as Report
    from .report import render_junit as render_junit
    from .report import summarize_reports as summarize_reports
    from .stopping import raise_on_signals as raise_on_signals

_HOMES = {
    "ExecutionOptions": "execution_options",
    "EarlyKernels": "kernels",
    "CheckOptions": "notebook_check",
    "Problem": "report",
    "Progress": "progress",
    "Relay": "event_relay",
    "Report": "report",
    "check_notebook": "notebook_check",
    "choose_kernel": "kernels",
    "choose_test_kernel": "notebook_check",
    "execute_notebook": "client",
    "raise_on_signals": "stopping",
    "render_junit": "report",
    "summarize_reports": "report",
}

__getattr__, __dir__ = open_door(__name__, _HOMES)
