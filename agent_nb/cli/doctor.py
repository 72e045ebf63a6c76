"""The command `doctor`: prints the findings about this installation (`notebook.collect_findings`).

It fails (exit code 1) if a finding reports something broken, so that scripts see it.
"""

from __future__ import annotations

import argparse

import msgspec

from .shared import FAILED, OK, Arguments, add_flag
from .terminal import print_lines, show_json


def run_doctor(arguments: Arguments) -> int:
    """say what is installed, enabled and missing, and what to do about it"""
    from ..notebook import collect_findings

    findings = collect_findings()
    if arguments.json:
        listed = [msgspec.to_builtins(finding) for finding in findings]
        show_json({"ok": findings.sound, "findings": listed})
    else:
        print_lines(findings.render())
    return OK if findings.sound else FAILED


def doctor_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    add_flag(sub, "--json", "print the findings as JSON")
