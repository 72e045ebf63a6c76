"""The command `doctor`: what is installed, what is missing, what to do."""

from __future__ import annotations

import argparse

from .shared import FAILED, OK, Arguments
from .terminal import show, show_json


def doctor(arguments: Arguments) -> int:
    """say what is installed, enabled and missing, and what to do about it"""
    from ..notebook.doctor import as_json, examine, report, well

    findings = examine()
    if arguments.json:
        show_json(as_json(findings))
    else:
        show(report(findings))
    return OK if well(findings) else FAILED


def doctor_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    sub.add_argument("--json", action="store_true", help="print the findings as JSON")
