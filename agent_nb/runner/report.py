"""The report of `test`: lines for a terminal, JSON, and JUnit XML for CI.

Why: a failed test is useful only if it says which command makes it pass. A report may hold whatever
a kernel writes: it is made printable here for XML only; for a terminal, `cli.terminal` does it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any, Literal
from xml.etree import ElementTree

import msgspec

from ..errors import AgentError
from ..notebook import make_printable
from ..view import count_noun

#: Characters that XML 1.0 does not allow.
_NO_XML = re.compile("[^\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Kinds of problems: no record; a record of other inputs; a call with another result; changed code
#: or a changed picture; a missing signature; the status of the run; an error, a dead kernel or a
#: timeout of a cell; a notebook that cannot be tested.
Kind = Literal[
    "unrecorded", "stale", "drift", "changed", "picture", "untrusted", "status", "error", "kernel",
    "timeout", "notebook",
]  # fmt: skip
# kinds that `run` does not detect: without --live it would replay the same record
UNNOTICED: tuple[Kind, ...] = ("changed", "picture")
AGAIN = "To record it again: jupyter agent-nb run{live} --inplace {notebook}"
SIGN = "To let its calls run again, read and sign them: jupyter agent-nb sign {notebook}"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem of a notebook, or a warning."""

    text: str  # one or more lines
    cell: int = 0  # its number, from 1; 0: the whole notebook
    kind: Kind = "stale"
    stale: bool = True  # recording again would help
    warning: bool = False  # does not fail the test


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one notebook, which passed if `problems` is empty."""

    notebook: str
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    runs: int = 0  # replayed
    scripted: int = 0  # runs of scripts without a record
    skipped: str = ""  # the missing extra that ended it early; "": none
    patterns: tuple[str, ...] = ()  # differences that the project's rules exclude
    masked: tuple[str, ...] = ()  # differences of known kinds, such as clock values
    unseen: tuple[str, ...] = ()  # what could not be compared
    seconds: float = 0.0

    @classmethod
    def of_error(cls, notebook: str, error: Exception) -> Report:
        """Return the report of a notebook that could not be tested."""
        text = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
        return cls(notebook=notebook, problems=(Problem(text=text, kind="notebook", stale=False),))

    @property
    def ok(self) -> bool:
        """Whether the notebook has no problems, as far as it ran."""
        return not self.problems

    @property
    def advice(self) -> tuple[str, ...]:
        """The cheapest commands that help, as lines."""
        notebook, stale = shlex.quote(self.notebook), [p for p in self.problems if p.stale]
        live = " --live" if any(p.kind in UNNOTICED for p in stale) else ""
        untrusted = any(p.kind == "untrusted" for p in self.problems)
        advice = (
            AGAIN.format(live=live, notebook=notebook) if stale else "",
            SIGN.format(notebook=notebook) if untrusted else "",
        )
        return tuple(filter(None, advice))

    @property
    def result(self) -> str:
        """The result in a few words."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        return f"ok, {self._count_runs()}" if self.ok else "failed"

    def __str__(self) -> str:
        return self.text()

    def text(self, *, verbose: bool = False) -> str:
        """Return the report as lines; `verbose` adds masked and unseen differences."""
        paragraphs = (
            *(problem.text for problem in self.problems),
            *(f"warning: {warning.text}" for warning in self.warnings),
            *(f"not compared: {text}" for text in self.patterns),
            *(f"masked: {line}" for line in self.masked if verbose),
            *(f"not seen: {line}" for line in self.unseen if verbose),
            *self.advice,
        )
        lines = [f"  {line}" for text in paragraphs for line in text.splitlines()]
        return "\n".join([f"{self.notebook}: {self.result}", *lines])

    def to_builtins(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        problem_lists = {
            name: [{"cell": p.cell, "kind": p.kind, "message": p.text} for p in problems]
            for name, problems in (("problems", self.problems), ("warnings", self.warnings))
        }
        return {"ok": self.ok, **fields, **problem_lists, "advice": list(self.advice)}

    @staticmethod
    def summarize(reports: Sequence[Report]) -> str:
        """Return the results of several notebooks as one line."""
        failed, skipped = _count_results(reports)
        passed = len(reports) - failed - skipped
        counts = ((passed, "passed"), (failed, "failed"), (skipped, "skipped"))
        runs = sum(r.runs for r in reports)
        return f"{', '.join(f'{n} {word}' for n, word in counts if n)}: {count_noun(runs, 'run')} replayed"

    @staticmethod
    def render_junit(reports: Sequence[Report]) -> str:
        """Return the reports as JUnit XML, one test case for each notebook."""
        failed, skipped = _count_results(reports)
        attributes = {
            "name": "agent_nb",
            "tests": str(len(reports)),
            "failures": str(failed),
            "errors": "0",
            "skipped": str(skipped),
            "time": f"{sum(r.seconds for r in reports):.3f}",
        }
        root = ElementTree.Element("testsuites")
        suite = ElementTree.SubElement(root, "testsuite", attributes)
        suite.extend(map(_make_junit_case, reports))
        ElementTree.indent(root)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'

    def _count_runs(self) -> str:
        replayed = f"{count_noun(self.runs, 'run')} replayed"
        return f"{replayed}, {self.scripted} scripted, not replayed" if self.scripted else replayed


def _count_results(reports: Sequence[Report]) -> tuple[int, int]:
    """Return how many notebooks failed, and how many were skipped."""
    return sum(not r.ok for r in reports), sum(bool(r.skipped) for r in reports)


def _make_junit_case(report: Report) -> ElementTree.Element:
    name, time = _to_xml(report.notebook), f"{report.seconds:.3f}"
    case = ElementTree.Element("testcase", {"classname": "agent_nb", "name": name, "time": time})
    if report.problems:
        message = _to_xml(report.problems[0].text.partition("\n")[0])
        failure = ElementTree.SubElement(case, "failure", {"message": message})
        failure.text = _to_xml(report.text())
    elif report.skipped:
        ElementTree.SubElement(case, "skipped", {"message": _to_xml(report.skipped)}).text = ""
    if report.warnings:
        warnings = "\n".join(warning.text for warning in report.warnings)
        ElementTree.SubElement(case, "system-out").text = _to_xml(warnings)
    return case


def _to_xml(text: str) -> str:
    """Return a text without the characters that XML does not allow."""
    return _NO_XML.sub("\ufffd", make_printable(text))
