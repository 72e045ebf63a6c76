"""Executes notebooks without a front end, for the commands `run` and `test`.

Why: CI and schedulers have no browser, and a recorded notebook is its own test.

Read `client` first: it executes one notebook, on the kernel that `kernels` chooses. For `run`,
`event_relay` passes events on to stdout, and `quiet` keeps what did not change in the file. For
`test`, `notebook_check` executes a notebook strictly, `cell_problems` finds its problems, and
`report` writes them as text, JSON or JUnit XML.

Order of imports, lowest level first: cell_failure, event_relay, execution_options, progress,
  project, report, same_run, shown_pictures, stopping
< kernels, quiet
< early_kernels
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
    from .early_kernels import EarlyKernels as EarlyKernels
    from .event_relay import Relay as Relay
    from .execution_options import ExecutionOptions as ExecutionOptions
    from .notebook_check import CheckOptions as CheckOptions
    from .notebook_check import check_notebook as check_notebook
    from .progress import Progress as Progress
    from .report import Report as Report
    from .stopping import raise_on_signals as raise_on_signals

# file of the room -> the names that it defines
_NAMES = {
    "client": "execute_notebook",
    "early_kernels": "EarlyKernels",
    "event_relay": "Relay",
    "execution_options": "ExecutionOptions",
    "notebook_check": "CheckOptions check_notebook",
    "progress": "Progress",
    "report": "Report",
    "stopping": "raise_on_signals",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
