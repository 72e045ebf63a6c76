"""One line of the doctor's report, and the report as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

State = Literal["ok", "broken", "missing", "info"]
MARKS: dict[str, str] = {"ok": "✓", "broken": "✗", "missing": "–", "info": " "}


class Finding(msgspec.Struct, frozen=True):
    """One line of the report.

    `broken` is what runs cannot do without, `missing` what they can; `todo` is the remedy.
    """

    topic: str
    state: State
    said: str
    todo: str = ""


Check = Callable[[], Iterator[Finding]]


def well(findings: list[Finding]) -> bool:
    """Return whether nothing is broken."""
    return not any(f.state == "broken" for f in findings)


def report(findings: list[Finding]) -> str:
    """Return the findings as lines for people."""
    width = max((len(f.topic) for f in findings), default=0)
    lines = []
    for f in findings:
        lines.append(f"{MARKS[f.state]} {f.topic:<{width}}  {f.said}".rstrip())
        if f.todo:
            lines.append(f"  {'':<{width}}  → {f.todo}")
    return "\n".join(lines)


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """Return the findings for programs."""
    return {"ok": well(findings), "findings": msgspec.to_builtins(findings)}
