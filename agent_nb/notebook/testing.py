"""`jupyter agent-nb test`: a notebook as its own test. It is executed from its records, with no model and no key.

Why strict: a test that quietly went live, or skipped a cell without a record, would prove nothing.

Rules
- Every `%%agent` cell has a record that matches, is replayed without drift, and ended `ok` or at a limit. Every run that Python code begins
  is replayed, and every recorded run of the cell's newest execution begins again. Scripts without a record run; they are counted apart.
- Every other cell runs. After a failed agent cell the test goes on; after another one only where that is wished.
- The kernel knows it from its start (`launch.STRICT`): nothing in the notebook, its metadata or its environment makes it go live.
- A problem names the cell, the first difference, and the command that records again where that helps. The file is not written.
- A notebook that ends because an extra is not installed here is skipped, with the extra's name: only if nothing else is wrong with it,
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
from ..record import NONE, events_of
from ..signing import user_key
from .cell_failure import Failure, title
from .execute import OnCell, execute
from .metadata import load, records
from .recording import begun_by
from .transform import agent_cell, source_of

LONGEST = 20  # lines of a difference
PASSING = ("ok", "limit")  # how a recorded run may have ended
Numbers = Mapping[str, Any]  # of a run, as its output names them
Record = Mapping[str, Any]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one notebook. `problems` are empty if it passed; `runs` and `scripted` count the runs that were replayed and those of
    scripts without a record; `skipped`: why it ended before its last cell although nothing is wrong with it ("": it did not); `stale`:
    recording it again would help."""

    notebook: str
    problems: tuple[str, ...] = ()
    runs: int = 0
    scripted: int = 0
    skipped: str = ""
    stale: bool = False

    @property
    def ok(self) -> bool:
        """Whether it passed, as far as it could run."""
        return not self.problems

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.notebook}: skipped: {self.skipped}"
        if self.ok:
            return f"{self.notebook}: ok, {self._counts()}"
        again = f"  To record it again: jupyter agent-nb run --live --inplace {shlex.quote(self.notebook)}"
        lines = (f"  {line}" for p in self.problems for line in p.splitlines())
        return "\n".join([f"{self.notebook}: failed", *lines, *([again] if self.stale else [])])

    def _counts(self) -> str:
        replayed = f"{self.runs} run{'' if self.runs == 1 else 's'} replayed"
        return f"{replayed}, {self.scripted} scripted, not replayed" if self.scripted else replayed


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong, in lines; `stale`: recording again would help."""

    text: str
    stale: bool = True


def check_notebook(
    path: Path, *, trust: bool = False, trust_folder: bool = False, timeout: float | None = None, kernel: str = "",
    keep_going: bool = False, on_cell: OnCell = lambda *_: None,
) -> Report:  # fmt: skip
    """Replay the notebook at `path` strictly and report. Raises UsageError if it is not a notebook or has no kernel."""
    nb = load(path)
    outcome = execute(
        path, rerun="replay", strict=True, trust=trust, trust_folder=trust_folder, timeout=timeout, kernel=kernel, on_cell=on_cell,
        goes_on=lambda cell: keep_going or agent_cell(source_of(cell)) is not None,
    )  # fmt: skip
    # what the cells that did not run show is of another execution
    shown = [(number, run) for number, run in outcome.runs if number <= outcome.reached]
    needed = _needed(outcome.failures)
    excused = outcome.reached if needed else len(nb["cells"])
    key, recorded = user_key(), records(nb)
    problems: list[Problem] = []
    for number, cell in enumerate(nb["cells"], 1):
        listed = ranked(recorded.get(str(cell.get("id")), []), key)
        runs = [run for n, run in shown if n == number]
        failed = [f for f in outcome.failures if f.cell == number and not needed]
        problems += _cell(number, cell, listed, runs, failed, must=number <= excused)
    if problems or not needed:
        problems += [Problem(str(f), stale=False) for f in outcome.failures if needed or not f.cell]
    replayed, scripted = (sum(bool(run.get(how)) for _, run in shown) for how in ("replayed", "scripted"))
    return Report(
        notebook=str(path), problems=tuple(p.text for p in problems), runs=replayed, scripted=scripted,
        skipped="" if problems else needed, stale=any(p.stale for p in problems),
    )  # fmt: skip


def _needed(failures: Sequence[Failure]) -> str:
    """Return in words which extra a notebook ended for the lack of ("": of none, or it is installed here)."""
    from .doctor import EXTRAS

    last = failures[-1] if failures else Failure()
    command = last.message.rpartition("Install it with: ")[2].strip()
    if last.error != MissingExtra.__name__ or not command:
        return ""
    lacking = (name for name, (modules, _, install) in EXTRAS.items() if command in install and None in map(find, modules))
    return next((f"needs the extra {name} ({command})" for name in lacking), "")


def _cell(
    number: int, cell: Record, listed: Sequence[Record], runs: Sequence[Numbers], failed: Sequence[Failure], *, must: bool
) -> Iterator[Problem]:
    """Yield what is wrong with one cell. `listed` are its records in the order in which they count, `runs` the numbers that it showed."""
    if cell.get("cell_type") != "code":
        return
    found: list[Problem] = []
    if agent_cell(source_of(cell)) is not None:
        own = [r for r in listed if r.get("conversation") != NONE] or listed
        found += _agent_cell(number, cell, own, next((r for r in runs if "ordinal" not in r), None), must=must)
    found += _code(number, cell, begun_by(listed), [r for r in runs if "ordinal" in r], must=must)
    yield from found
    said = "\n".join(p.text for p in found)
    yield from (Problem(str(f), stale=False) for f in failed if f.message[:60] not in said)


def _agent_cell(
    number: int, cell: Record, listed: Sequence[Record], run: Numbers | None, *, must: bool
) -> Iterator[Problem]:
    """Yield what is wrong with the run of an agent cell (None: it did not run, which it `must`)."""
    name = title(number, cell)
    if not listed:
        yield Problem(f"{name}: there is no record")
        return
    yield from (Problem(f"{name}: {problem}") for problem in check(listed[0]))
    if run is None:
        yield from [Problem(f"{name}: it did not run", stale=False)] if must else []
    elif not run.get("replayed"):
        yield Problem("\n".join([f"{name}: {run.get('error') or 'it was not replayed'}", *_prompts(cell, listed[0])]))
    elif drift := run.get("drift"):
        yield _drifted(name, drift)
    elif run.get("status") not in PASSING and not run.get("imported"):  # a run of another system may end as it likes
        yield Problem(f"{name}: the recorded run ended with status {run.get('status')}")


def _code(
    number: int, cell: Record, listed: Sequence[Record], runs: Sequence[Numbers], *, must: bool
) -> Iterator[Problem]:
    """Yield what is wrong with the runs that the code of a cell began; `listed` are those of its newest recorded execution."""
    name = title(number, cell)
    for run in runs:
        if drift := run.get("drift"):
            yield _drifted(name, drift)
        elif not (run.get("replayed") or run.get("scripted")):
            yield Problem(f"{name}: {run.get('error') or 'a run was not replayed'}")
        elif run.get("scripted") and run.get("calls") and run.get("calls") == run.get("denied"):
            yield Problem(f"{name}: every call of a run was denied: {run['calls']} calls ({run['denied']} denied)", stale=False)
    begun = sum(bool(r.get("replayed")) for r in runs)
    if must and begun < len(listed):
        yield Problem(f"{name}: {len(listed) - begun} of {len(listed)} recorded runs did not begin")


def _drifted(name: str, drift: Mapping[str, Any]) -> Problem:
    sides = _lines(str(drift.get("recorded", "")), str(drift.get("fresh", "")))
    return Problem("\n".join([f"{name}: {_head(drift)}", *sides, *_why(drift)]))


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
