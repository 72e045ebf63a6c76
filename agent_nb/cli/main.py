"""The command line: `jupyter agent-nb COMMAND …` (also `python -m agent_nb`).

Rules
- Exit codes: 0 ok, 1 something failed while it ran (`diff`: runs differ), 2 the command was wrong.
- Results go to stdout (`--json`: as JSON), progress and errors to stderr.
- The docstring of a command is its help.
- Commands import slow modules inside their functions, so that each loads only its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .. import __version__
from ..errors import AgentError, UsageError
from . import convert, doctor, git, records, report, run, serve, signing, trusting
from .shared import FAILED, OK, USAGE, AddOptions, Command, file_options
from .terminal import Parser, leave_quietly, prepare_streams, print_complaint

EPILOG = """\
examples:
  jupyter agent-nb run analysis.ipynb              play what has not changed, run the rest, write analysis.run.ipynb
  jupyter agent-nb test --trust-record examples/   replay everything: no model, no key, no network
  jupyter agent-nb export analysis.ipynb -o runs.html
  jupyter agent-nb COMMAND --help                  what a command takes
exit codes: 0 ok, 1 something that was run has failed, 2 the command was wrong
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `argv`: its words (default: `sys.argv[1:]`).

    Exits with code 2 at an unknown command or option, and with 0 after --help or --version.
    """
    prepare_streams()
    arguments = make_parser().parse_args(argv)
    try:
        code: int = arguments.command(arguments)
        return code
    except UsageError as fault:
        print_complaint(str(fault))
        return USAGE
    except AgentError as fault:
        print_complaint(str(fault))
        return FAILED
    except BrokenPipeError:  # the reader of stdout stopped early, as `head` does
        leave_quietly()
        return OK
    except KeyboardInterrupt as stop:  # its text, if any, names the signal that stopped notebooks
        print_complaint(f"stopped by {stop}; nothing more was run" if str(stop) else "interrupted")
        return FAILED


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = Parser(
        prog="jupyter agent-nb",
        description="Run and inspect notebooks with %%agent cells.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name, (function, add_options) in COMMANDS.items():
        text = (function.__doc__ or "").strip()
        sub = commands.add_parser(name, help=text, description=text[:1].upper() + text[1:])
        add_options(sub)
        sub.set_defaults(command=function)
    return top


# command name -> (the function that runs the command, the function that adds its options)
COMMANDS: dict[str, tuple[Command, AddOptions]] = {
    "run": (run.run_notebooks, run.run_options),
    "test": (run.check_notebooks, run.test_options),
    "events": (report.print_events, report.events_options),
    "export": (report.export_notebooks, report.export_options),
    "convert": (convert.convert_run, convert.convert_options),
    "serve": (serve.serve_runs, serve.serve_options),
    "diff": (report.diff_notebooks, report.diff_options),
    "verify": (report.verify_notebooks, report.verify_options),
    "git-setup": (git.git_setup, git.git_setup_options),
    "git-text": (git.git_text, git.git_text_options),
    "git-merge": (git.git_merge, git.git_merge_options),
    "pack": (records.pack_records, file_options),
    "strip": (records.strip_records, records.strip_options),
    "sign": (signing.sign_notebooks, signing.sign_options),
    "trust": (signing.manage_signers, signing.trust_options),
    "trust-folder": (trusting.trust_folder, trusting.trust_folder_options),
    "mcp": (trusting.manage_servers, trusting.mcp_options),
    "doctor": (doctor.run_doctor, doctor.doctor_options),
}
