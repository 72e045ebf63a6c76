"""The command `doctor`: what is here and what is missing."""

from __future__ import annotations

import argparse
import json

from .shared import FAILED, OK, Arguments


def doctor(arguments: Arguments) -> int:
    """say what is installed, enabled and missing, and what to do about it"""
    from ..notebook.doctor import as_json, examine, report, well

    findings = examine()
    print(json.dumps(as_json(findings), ensure_ascii=False, indent=2) if arguments.json else report(findings))
    return OK if well(findings) else FAILED


def doctor_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `doctor`."""
    sub.add_argument("--json", action="store_true", help="print the findings as JSON")
