"""The notebook: `%%agent` and `%agent`, the session of a kernel, records in notebook files.

Read `cell/run` first: one cell from its text to its record. IPython loads `magic` and Jupyter
`presave` by their names; the runner and the command line read and review notebooks here, and send a
kernel the options of a cell (`RunnerOptions`). Below, a file imports only from the lines above its
own.

Order of imports, lowest level first: conversations, file_text, mentions, notices, option_table,
  runner_options, saved_views, transform, yes_no
< identity, mcp_servers, options, presave
< files, output_option
< doctor, session
< cell
< follow
< commands, presenter
< completion
< magic
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .cell.trusting import trust_folder as trust_folder
    from .doctor import collect_findings as collect_findings
    from .doctor.environment import EXTRAS as EXTRAS
    from .files.cell_titles import name_cell as name_cell
    from .files.export import export as export
    from .files.export import is_page as is_page
    from .files.git import diff_text as diff_text
    from .files.git import merge_files as merge_files
    from .files.git_setup import install_drivers as install_drivers
    from .files.recorded_runs import compare_notebooks as compare_notebooks
    from .files.recorded_runs import read_runs as read_runs
    from .files.review import countersigned_records as countersigned_records
    from .files.review import review_records as review_records
    from .files.review import signature_remarks as signature_remarks
    from .files.verdicts import verify as verify
    from .mcp_servers import run_mcp_command as run_mcp_command
    from .notices import format_table as format_table
    from .notices import make_printable as make_printable
    from .runner_options import RunnerOptions as RunnerOptions
    from .runner_options import write_options as write_options
    from .yes_no import ask_yes_no as ask_yes_no

# file of the room -> the names that it defines
_NAMES = {
    "cell.trusting": "trust_folder",
    "doctor": "collect_findings",
    "doctor.environment": "EXTRAS",
    "files.cell_titles": "name_cell",
    "files.export": "export is_page",
    "files.git": "diff_text merge_files",
    "files.git_setup": "install_drivers",
    "files.recorded_runs": "compare_notebooks read_runs",
    "files.review": "countersigned_records review_records signature_remarks",
    "files.verdicts": "verify",
    "mcp_servers": "run_mcp_command",
    "notices": "format_table make_printable",
    "runner_options": "RunnerOptions write_options",
    "yes_no": "ask_yes_no",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
