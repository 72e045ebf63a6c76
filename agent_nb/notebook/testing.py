"""`jupyter agent-nb test`: a notebook as its own test. It is executed from its records, with no model and no key.

Why strict: a test that quietly went live, or skipped a cell without a record, would prove nothing.

Rules
- Every `%%agent` cell must have a record that matches, be replayed without drift, and have ended `ok` or at a limit; every
  other cell must run.
- The kernel is told so when it starts (`launch.STRICT`): nothing in the notebook, its metadata or its environment makes it go live.
- What is wrong is said with the cell, the first difference, and the command that records again. The file is not written.
- A notebook without agent cells passes if it runs.
- A notebook that ends because an extra is not installed here is skipped, with the extra's name: only when nothing else is wrong with it,
  as far as it came and in its records, and never where the extra is installed.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..check import check
from ..errors import MissingExtra
from ..events import User
from ..folder.imports import find
from ..ranking import ranked
from ..record import events_of
from ..signing import user_key
from .execute import OnCell, execute
from .metadata import load, records
from .transform import agent_cell, source_of

LONGEST = 20  # lines of a difference
LINE = 60  # characters of a prompt that name its cell
PASSING = ("ok", "limit")  # how a recorded run may have ended


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one notebook. `problems` are empty when it passed; `runs`: how many agent cells were replayed; `skipped`: why it ended
    before its last cell although nothing is wrong with it ("": it did not)."""

    notebook: str
    problems: tuple[str, ...] = ()
    runs: int = 0
    skipped: str = ""

    @property
    def ok(self) -> bool:
        """Whether it passed, as far as it could run."""
        return not self.problems

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.notebook}: skipped: {self.skipped}"
        if self.ok:
            return f"{self.notebook}: ok, {self.runs} run{'' if self.runs == 1 else 's'} replayed"
        again = f"To record it again: jupyter agent-nb run --live --inplace {shlex.quote(self.notebook)}"
        return "\n".join([f"{self.notebook}: failed", *(f"  {line}" for p in self.problems for line in p.splitlines()), f"  {again}"])


def check_notebook(
    path: Path, *, trust: bool = False, trust_folder: bool = False, timeout: float | None = None, kernel: str = "",
    on_cell: OnCell = lambda *_: None,
) -> Report:  # fmt: skip
    """Replay the notebook at `path` strictly and report. Raises UsageError when it is no notebook or has no kernel."""
    nb = load(path)
    last = 0

    def begun(index: int, count: int, source: str) -> None:
        nonlocal last
        last = index + 1
        on_cell(index, count, source)

    outcome = execute(
        path, rerun="replay", strict=True, trust=trust, trust_folder=trust_folder, timeout=timeout, kernel=kernel, on_cell=begun
    )
    ran = {number: run for number, run in outcome.runs if number <= last}  # what the cells below show is of another execution
    needed = _needed(outcome.failure)
    excused = last if needed else len(nb["cells"])
    key, recorded = user_key(), records(nb)
    problems: list[str] = []
    for number, cell in _agent_cells(nb).items():
        problems += _cell(number, cell, ranked(recorded.get(str(cell.get("id")), []), key), ran.get(number), must=number <= excused)
    if outcome.failure and (problems or not needed) and not any(outcome.failure.partition(": ")[2][:60] in p for p in problems):
        problems.append(outcome.failure)
    replayed = sum(bool(r.get("replayed")) for r in ran.values())
    return Report(notebook=str(path), problems=tuple(problems), runs=replayed, skipped="" if problems else needed)


def _needed(failure: str) -> str:
    """Return in words which extra a notebook ended for the lack of ("": of none, or it is installed here)."""
    from .doctor import EXTRAS

    kind, _, message = failure.partition(": ")
    command = message.rpartition("Install it with: ")[2].strip()
    if kind != MissingExtra.__name__ or not command:
        return ""
    lacking = (name for name, (modules, _, install) in EXTRAS.items() if command in install and None in map(find, modules))
    return next((f"needs the extra {name} ({command})" for name in lacking), "")


def _agent_cells(nb: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Return the agent cells of a notebook by their number, from 1."""
    return {
        number: cell
        for number, cell in enumerate(nb["cells"], 1)
        if isinstance(cell, dict) and cell.get("cell_type") == "code" and agent_cell(source_of(cell)) is not None
    }


def _cell(
    number: int, cell: Mapping[str, Any], listed: Sequence[Mapping[str, Any]], run: Mapping[str, Any] | None, *, must: bool
) -> Iterator[str]:
    """Yield what is wrong with one agent cell.

    `listed` are its records in the order in which they count, `run` the numbers of what it showed (None: it did not run, which it `must`).
    """
    name = _title(number, cell)
    if not listed:
        yield f"{name}: there is no record"
        return
    yield from (f"{name}: {problem}" for problem in check(listed[0]))
    if run is None:
        yield from [f"{name}: it did not run"] if must else []
    elif not run.get("replayed"):
        yield "\n".join([f"{name}: {run.get('error') or 'it was not replayed'}", *_prompts(cell, listed[0])])
    elif drift := run.get("drift"):
        yield "\n".join([f"{name}: {_head(drift)}", *_lines(str(drift.get("recorded", "")), str(drift.get("fresh", ""))), *_why(drift)])
    elif run.get("status") not in PASSING and not run.get("imported"):  # a run of another system may end as it likes
        yield f"{name}: the recorded run ended with status {run.get('status')}"


def _title(number: int, cell: Mapping[str, Any]) -> str:
    """Return what a cell is called: its number, its id and the first line of its prompt."""
    parts = agent_cell(source_of(cell))
    first = " ".join((parts[1] if parts else "").strip().partition("\n")[0].split())
    said = f' "{first[:LINE]}{"…" if len(first) > LINE else ""}"' if first else ""
    place = f" ({cell['id']})" if cell.get("id") else ""
    return f"cell {number}{place}{said}"


def _head(drift: Mapping[str, Any]) -> str:
    """Return the first diverging event in words."""
    name, seq = drift.get("name"), drift.get("seq")
    call = f" (call {drift['call_id']})" if drift.get("call_id") else ""
    return f"{name} gave another result when it ran again: event {seq}, the result of {name}{call}"


def _why(drift: Mapping[str, Any]) -> list[str]:
    """Return why a function ran again although nobody said that it should."""
    used = ", ".join(map(str, drift.get("reads") or ()))
    name = drift.get("name")
    return [f'{name} runs again because it uses {used} of the notebook; @tool(effect="none") plays it from the record'] if used else []


def _prompts(cell: Mapping[str, Any], record: Mapping[str, Any]) -> list[str]:
    """Return how the prompt has changed since it was recorded; nothing where `{{ }}` or no change make it moot."""
    parts = agent_cell(source_of(cell))
    said = next((e.content for e in events_of(record) if isinstance(e, User)), "")
    body = (parts[1] if parts else "").strip()
    return [] if "{{" in body or body == said.strip() else _lines(said.strip(), body)


def _lines(before: str, after: str) -> list[str]:
    found: Sequence[str] = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "recorded", "now", lineterm="", n=1))
    return [*found[:LONGEST], *([f"… {len(found) - LONGEST} more lines"] if len(found) > LONGEST else [])]
