"""`jupyter agent-nb test`: a notebook as its own test. It is executed from its records, with no
model and no key.

Why strict: a test that quietly went live, or skipped a cell without a record, would prove nothing.

Rules
- Every `%%agent` cell has a record that matches, is replayed without drift, and ended `ok` or at a
  limit. Every run that Python code begins is replayed, and every recorded run of the cell's newest
  execution begins again. Scripts without a record run; they are counted apart.
- Every other cell runs. After a failed agent cell the test goes on; after another one only where
  that is wished.
- The kernel knows it from its start (`launch.STRICT`): nothing in the notebook, its metadata or its
  environment makes it go live.
- What a signer has signed runs again as what this user has recorded does. Signers are the user's,
  never the repository's.
- A problem names the cell, the first difference, and the command that records again where that
  helps. The file is not written.
- A notebook that ends because an extra is not installed here is skipped, with the extra's name:
  only if nothing else is wrong with it, as far as it came and in its records, and never where the
  extra is installed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ...agent.tape import FOREIGN
from ...errors import MissingExtra
from ...events import RunStart
from ...host import launch
from ...host.imports import find
from ...record.agent_cells import agent_cell
from ...record.clock import is_zone
from ...record.given import lines
from ...record.ipynb import load, source_of
from ...record.masks import PATTERN
from ...record.notebook_file import records
from ...record.ranking import ranked, started
from ...record.record import NONE, events_of
from ...record.signers import Signer, known
from ...record.signing import user_key
from ...record.verify import check
from ..cell.recording import begun_by
from . import project
from .cell_failure import Failure, title
from .kernels import Ahead, Wanted, wanted
from .report import Problem, Report
from .review import countersigned, remarks
from .shown_pictures import differences

if TYPE_CHECKING:
    from .client import OnCell, Outcome

PASSING = ("ok", "limit")  # how a recorded run may have ended
Numbers = Mapping[str, Any]  # of a run, as its output names them
Record = Mapping[str, Any]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a notebook is tested: `trust` lets code of records run again that this user has not
    signed, `trust_folder` lets the folder's policies allow calls, `timeout` is in seconds per cell
    (None: none), `kernel` another one than the notebook's; `keep_going` goes on after a failed cell
    of Python code, `strict_tools` fails where a tool changed whose result came from the record;
    what `signers` (None: those of the user) have signed runs again as what this user has recorded
    does.
    """

    trust: bool = False
    trust_folder: bool = False
    timeout: float | None = None
    kernel: str = ""
    keep_going: bool = False
    strict_tools: bool = False
    signers: Sequence[Signer] | None = None


DEFAULTS = Options()


class Recorded(msgspec.Struct, frozen=True):
    """The records of a cell in the order in which they count, and what is wrong with the one that
    an agent cell plays.
    """

    listed: Sequence[Record]
    faults: Sequence[str]


def check_notebook(
    path: Path,
    options: Options = DEFAULTS,
    on_cell: OnCell = lambda *_: None,
    ahead: Ahead | None = None,
) -> Report:
    """Replay the notebook at `path` strictly and report; `ahead` may have started its kernel.

    Raises UsageError if it is not a notebook or has no kernel.
    """
    from .client import execute  # nbclient takes its time; meanwhile the kernel starts

    nb, began = load(path), time.monotonic()
    recorded = records(nb)
    signers = known() if options.signers is None else options.signers
    with ThreadPoolExecutor(1) as beside:  # while the kernel starts and works
        checked = beside.submit(
            lambda: [
                _checked(nb, cell, recorded.get(str(cell.get("id")), []), signers)
                for cell in nb["cells"]
            ]
        )
        outcome = execute(
            path,
            rerun=launch.REPLAY,
            strict=True,
            trust=options.trust,
            trust_folder=options.trust_folder,
            timeout=options.timeout,
            kernel=options.kernel,
            on_cell=on_cell,
            normalize=project.rules(path),
            zone=_zone(recorded),
            goes_on=lambda cell: options.keep_going or agent_cell(source_of(cell)) is not None,
            signers=signers,
            ahead=ahead,
        )
    # what the cells that did not run show is of another execution
    shown = [(number, run) for number, run in outcome.runs if number <= outcome.reached]
    needed = _needed(outcome.failures)
    found = list(_problems(nb, checked.result(), shown, outcome, signers, needed=needed))
    wrong = [p for p in found if not p.warning or options.strict_tools]
    if wrong or not needed:
        wrong += [
            Problem(text=str(f), stale=False) for f in outcome.failures if needed or not f.cell
        ]
    replayed, scripted = (
        sum(bool(run.get(how)) for _, run in shown) for how in ("replayed", "scripted")
    )
    masked, patterns = _masked(shown)
    return Report(
        notebook=str(path),
        problems=tuple(p.text for p in wrong),
        warnings=tuple(p.text for p in found if p not in wrong),
        runs=replayed,
        scripted=scripted,
        skipped="" if wrong else needed,
        stale=any(p.stale for p in wrong),
        masked=masked,
        patterns=patterns,
        unseen=tuple(
            dict.fromkeys(str(name) for _, run in shown for name in run.get("unseen") or ())
        ),
        seconds=time.monotonic() - began,
    )


def wants(path: Path, options: Options = DEFAULTS) -> Wanted:
    """Return what the kernel of a notebook under test has to be. Raises UsageError."""
    nb = load(path)
    return wanted(
        path,
        nb,
        options.kernel,
        trust_folder=options.trust_folder,
        strict=True,
        zone=_zone(records(nb)),
        rerun=launch.REPLAY,
    )


def _problems(
    nb: Record,
    checked: Sequence[Recorded],
    shown: Sequence[tuple[int, Numbers]],
    outcome: Outcome,
    signers: Sequence[Signer],
    *,
    needed: str,
) -> Iterator[Problem]:
    """Yield what is wrong with the cells of a notebook; behind the one that `needed` an extra
    nothing must have run.
    """
    excused = outcome.reached if needed else len(nb["cells"])
    for number, (cell, recorded) in enumerate(zip(nb["cells"], checked, strict=True), 1):
        runs = [run for n, run in shown if n == number]
        failed = [f for f in outcome.failures if f.cell == number and not needed]
        executed = outcome.notebook["cells"][number - 1]
        found = list(_folded(_cell(number, cell, recorded, runs, failed, must=number <= excused)))
        found += (
            []
            if found
            else [
                Problem(text=f"{title(number, cell)}: {words}")
                for words in _pictures(cell, executed, runs)
            ]
        )
        yield from found
        if any(FOREIGN in problem.text for problem in found):
            said = dict.fromkeys(
                words for r in recorded.listed for words in remarks(nb, cell, r, signers)
            )
            yield from (
                Problem(text=f"{title(number, cell)}: {words}", stale=False) for words in said
            )


def _checked(
    nb: Record, cell: Record, found: Sequence[Record], signers: Sequence[Signer]
) -> Recorded:
    """Order the records of a cell, and check the one that an agent cell plays."""
    listed = ranked(found, user_key(), countersigned(nb, cell, found, signers))
    asked = _asked(listed) if agent_cell(source_of(cell)) is not None else []
    return Recorded(listed, check(asked[0]) if asked else [])


def _asked(listed: Sequence[Record]) -> Sequence[Record]:
    """Return the records of agent cells, or those of code if the cell has only these."""
    return [r for r in listed if r.get("conversation") != NONE] or listed


def _pictures(cell: Record, executed: Record, runs: Sequence[Numbers]) -> Iterator[str]:
    """Yield in words which pictures of an agent cell differ."""
    run = next((r for r in runs if r.get("replayed") and "ordinal" not in r), None)
    if (
        run is not None
        and run.get("compare", "full") == "full"
        and agent_cell(source_of(cell)) is not None
    ):
        yield from differences(cell, executed, run)


def _folded(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the problems of a cell, those that begin with the same line once: runs in a loop tend
    to have the same.
    """
    alike: dict[tuple[str, bool], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.text.partition("\n")[0], problem.warning), []).append(problem)
    for first, *others in alike.values():
        head, line_end, rest = first.text.partition("\n")
        more = f" (and {len(others)} more like it)" if others else ""
        yield msgspec.structs.replace(first, text=f"{head}{more}{line_end}{rest}")


def _masked(shown: Sequence[tuple[int, Numbers]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what was masked: by its kind, and by the patterns of the project."""
    lines: dict[bool, list[str]] = {False: [], True: []}
    for number, run in shown:
        for rule, old, new in run.get("masked") or ():
            lines[rule.startswith(PATTERN)].append(f"cell {number}, {rule}: {old!r} = {new!r}")
    return tuple(lines[False]), tuple(lines[True])


def _zone(recorded: Mapping[str, Sequence[Record]]) -> str:
    """Return the name of the time zone in which the newest record of a notebook was made, "" where
    it names none that is known here.
    """
    newest = max((r for listed in recorded.values() for r in listed), key=started, default={})
    first = next(iter(events_of({**newest, "events": list(newest.get("events") or [])[:1]})), None)
    place = first.settings.get("place") if isinstance(first, RunStart) else None
    zone = place.get("zone") if isinstance(place, Mapping) else None
    return zone if isinstance(zone, str) and is_zone(zone) else ""


def _needed(failures: Sequence[Failure]) -> str:
    """Return in words which extra a notebook ended for the lack of ("": of none, or it is installed
    here).
    """
    from ..doctor import EXTRAS

    last = failures[-1] if failures else Failure()
    command = last.message.rpartition("Install it with: ")[2].strip()
    if last.error != MissingExtra.__name__ or not command:
        return ""
    lacking = (
        name
        for name, (modules, _, install) in EXTRAS.items()
        if command in install and None in map(find, modules)
    )
    return next((f"needs the extra {name} ({command})" for name in lacking), "")


def _cell(
    number: int,
    cell: Record,
    recorded: Recorded,
    runs: Sequence[Numbers],
    failed: Sequence[Failure],
    *,
    must: bool,
) -> Iterator[Problem]:
    """Yield what is wrong with one cell; `runs` are the numbers that it showed."""
    if cell.get("cell_type") != "code":
        return
    agents = agent_cell(source_of(cell)) is not None
    errors = [
        str(run["error"]) for run in runs if run.get("error") and (agents or "ordinal" in run)
    ]
    # the others are what a run says
    own = [f for f in failed if not any(error in f.message for error in errors)]
    if agents:
        run = next((r for r in runs if "ordinal" not in r), None)
        yield from _agent_cell(
            number, cell, _asked(recorded.listed), recorded.faults, run, must=must
        )
    begun = begun_by(recorded.listed)
    # among them may be runs that the cell followed, as in `attach`
    if not any(r.get("execution") for r in begun):
        begun = begun[sum("ordinal" not in run for run in runs) :]
    yield from _code(
        number, cell, begun, [r for r in runs if "ordinal" in r], must=must and not own
    )
    yield from (Problem(text=str(f), stale=False) for f in own)


def _agent_cell(
    number: int,
    cell: Record,
    listed: Sequence[Record],
    faults: Sequence[str],
    run: Numbers | None,
    *,
    must: bool,
) -> Iterator[Problem]:
    """Yield what is wrong with the run of an agent cell (None: it did not run, which it `must`)."""
    name = title(number, cell)
    if not listed:
        yield Problem(text=f"{name}: there is no record")
        return
    yield from (Problem(text=f"{name}: {problem}") for problem in faults)
    if run is None:
        yield from [Problem(text=f"{name}: it did not run", stale=False)] if must else []
    elif not run.get("replayed"):
        yield _not_replayed(name, run)
    elif drift := run.get("drift"):
        yield _drifted(name, drift)
    elif run.get("status") not in _expected(run) and not run.get("imported"):
        # a run of another system may end as it likes
        yield Problem(text=f"{name}: the recorded run ended with status {run.get('status')}")
    yield from _changed(name, run or {})


def _expected(run: Numbers) -> Sequence[Any]:
    return (run["expect"],) if run.get("expect") else PASSING


def _not_replayed(name: str, run: Numbers) -> Problem:
    differences = run.get("differences")
    return Problem(
        text="\n".join(
            [f"{name}: {run.get('error') or 'it was not replayed'}", *(map(str, differences or ()))]
        )
    )


def _changed(name: str, run: Numbers) -> Iterator[Problem]:
    """Yield what is not as it was recorded, beside the results."""
    for change in run.get("changes") or ():
        yield Problem(text=f"{name}: {change['text']}", warning=bool(change.get("warning")))


def _code(
    number: int, cell: Record, listed: Sequence[Record], runs: Sequence[Numbers], *, must: bool
) -> Iterator[Problem]:
    """Yield what is wrong with the runs that the code of a cell began; `listed` are those of its
    newest recorded execution.
    """
    name = title(number, cell)
    for run in runs:
        if drift := run.get("drift"):
            yield _drifted(name, drift)
        elif not (run.get("replayed") or run.get("scripted")):
            yield _not_replayed(name, run)
        elif run.get("scripted") and run.get("calls") and run.get("calls") == run.get("denied"):
            yield Problem(
                text=f"{name}: every call of a run was denied: {run['calls']} calls ({run['denied']} denied)",
                stale=False,
            )
        yield from _changed(name, run)
    begun = sum(bool(r.get("replayed")) for r in runs)
    if must and begun < len(listed):
        yield Problem(
            text=f"{name}: {len(listed) - begun} of {len(listed)} recorded runs did not begin"
        )


def _drifted(name: str, drift: Mapping[str, Any]) -> Problem:
    how = drift.get("how")
    sides = (
        [f"{how}"] if how else lines(str(drift.get("recorded", "")), str(drift.get("fresh", "")))
    )
    return Problem(text="\n".join([f"{name}: {_head(drift)}", *sides, *_why(drift)]))


def _head(drift: Mapping[str, Any]) -> str:
    """Return the first diverging event in words."""
    name, seq = drift.get("name"), drift.get("seq")
    call = f" (call {drift['call_id']})" if drift.get("call_id") else ""
    return f"{name} gave another result when it ran again: event {seq}, the result of {name}{call}"


def _why(drift: Mapping[str, Any]) -> list[str]:
    """Return why a function ran again although nobody said that it should."""
    used = ", ".join(map(str, drift.get("reads") or ()))
    name = drift.get("name")
    return (
        [
            f'{name} runs again because it uses {used} of the notebook; @tool(effect="none") plays it from the record'
        ]
        if used
        else []
    )
