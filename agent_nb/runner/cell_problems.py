"""Finds the problems in the cells of a notebook that `test` has executed.

Why: a cell may run without an error although its record is missing, or its replay differs.

Rules whose breach is a problem
- Every agent cell has a matching record and is replayed without drift. Its run ended `ok` or at a
  limit, or as the cell expects; an imported run may end in any way. Its displays are those of the
  file, unless its tests compare less (`compare`).
- All runs of Python code in a cell's newest recorded execution begin again, and are replayed. A run
  whose model is a script needs no record, but not all of its calls may be denied. The numbers of a
  run (`RunNumbers`) have an `ordinal` only if Python code began it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..notebook import countersigned_records, name_cell, signature_remarks
from ..record import (
    CellRecords,
    Notebook,
    Provenance,
    Record,
    RunNumbers,
    SideBySide,
    Signer,
    UserKey,
    agent_cell,
    check_record,
    source_of,
)
from ..view import count_noun
from ..wire import as_dict, as_list
from .cell_failure import Failure
from .report import Problem
from .shown_pictures import describe_differences, uncompared_kinds

if TYPE_CHECKING:
    from .client import Outcome

PASSING = ("ok", "limit")  # how a recorded run may end if its cell expects nothing else


class CheckedRecords(msgspec.Struct, frozen=True):
    """The records of a cell, best first, and the faults of the record that its replay plays."""

    listed: Sequence[Record]
    faults: Sequence[str]


def find_problems(
    nb: Notebook,
    checked: Sequence[CheckedRecords],
    shown: Sequence[tuple[int, RunNumbers]],
    outcome: Outcome,
    signers: Sequence[Signer],
    *,
    missing_extra: str,
) -> Iterator[Problem]:
    """Yield the problems in the cells of a notebook.

    checked: an item for each cell. shown: (cell number from 1, numbers of a run in its outputs).
    signers: those whose records count as the user's own, for remarks on records without trust.
    missing_extra: the optional package whose lack ended the notebook ("": none). Failures are then
        no problems, and the cells after the last one that ran need not run.
    """
    last = outcome.reached if missing_extra else len(nb["cells"])
    for number, (cell, recorded) in enumerate(zip(nb["cells"], checked, strict=True), 1):
        runs = [run for n, run in shown if n == number]
        failed = [f for f in outcome.failures if f.cell == number and not missing_extra]
        executed = outcome.notebook["cells"][number - 1]
        ran = {"must_run": number <= last, "has_run": number <= outcome.reached}
        problems = list(_merge_alike(_check_cell(number, cell, recorded, runs, failed, **ran)))
        # only if the replay agrees: otherwise different pictures would repeat its problem
        if not problems:
            problems = [
                Problem(text=f"{name_cell(number, cell)}: {difference}", kind="picture")
                for difference in _compare_pictures(cell, executed, runs)
            ]
        if any(map(_lacks_trust, problems)):
            remarks = dict.fromkeys(
                text for r in recorded.listed for text in signature_remarks(nb, cell, r, signers)
            )
            problems += [
                Problem(text=f"{name_cell(number, cell)}: {r}", kind="untrusted") for r in remarks
            ]
        for problem in problems:
            # recording again does not help against a lack of trust
            lacks = problem.kind == "untrusted" or _lacks_trust(problem)
            changes: dict[str, Any] = {"kind": "untrusted", "stale": False} if lacks else {}
            yield msgspec.structs.replace(problem, cell=number, **changes)


def _lacks_trust(problem: Problem) -> bool:
    from ..agent import RecordedTurns  # slow to import, and most notebooks have no problem

    # a run that refuses to play a stranger's code reports it with these words
    return RecordedTurns.FOREIGN in problem.text


def check_records(
    nb: Notebook,
    cell: Mapping[str, Any],
    records: Sequence[Record],
    signers: Sequence[Signer],
    key: UserKey,
) -> CheckedRecords:
    """Return the records of a cell, best first, and the faults of the one that its replay plays.

    `key`: the user's key, which ranks the user's own records first.
    """
    ranked = CellRecords(records).rank(key, countersigned_records(nb, cell, records, signers))
    prompted = _select_prompted(ranked) if agent_cell(source_of(cell)) is not None else []
    return CheckedRecords(ranked, check_record(prompted[0]) if prompted else [])


def _select_prompted(listed: Sequence[Record]) -> Sequence[Record]:
    """Return the records of the agent cell's own prompts; all records if there are none."""
    return [r for r in listed if r.get("conversation") != Provenance.NO_CONVERSATION] or listed


def _compare_pictures(
    cell: Mapping[str, Any], executed: Mapping[str, Any], runs: Sequence[RunNumbers]
) -> Iterator[str]:
    """Describe the pictures of a replayed agent cell that differ, if its tests compare them."""
    run = next((r for r in runs if r.get("replayed") and "ordinal" not in r), None)
    if (
        run is not None
        and run.get("compare", "full") in ("exact", "full")
        and agent_cell(source_of(cell)) is not None
    ):
        yield from describe_differences(cell, executed, run)


def find_unseen_displays(nb: Notebook, outcome: Outcome) -> Iterator[str]:
    """Describe the displays of agent cells that are not compared."""
    executed = outcome.notebook["cells"]
    for number, (cell, now) in enumerate(zip(nb["cells"], executed, strict=False), 1):
        if agent_cell(source_of(cell)) is not None:
            yield from (f"what cell {number} displays as {kind}" for kind in uncompared_kinds(now))


def _merge_alike(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Merge problems with the same first line into one, because runs in a loop fail alike."""
    alike: dict[tuple[str, bool], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.text.partition("\n")[0], problem.warning), []).append(problem)
    for first, *repeats in alike.values():
        head, line_end, details = first.text.partition("\n")
        more = f" (and {len(repeats)} more like it)" if repeats else ""
        yield msgspec.structs.replace(first, text=f"{head}{more}{line_end}{details}")


def _check_cell(
    number: int,
    cell: Mapping[str, Any],
    recorded: CheckedRecords,
    runs: Sequence[RunNumbers],
    failed: Sequence[Failure],
    *,
    must_run: bool,
    has_run: bool,
) -> Iterator[Problem]:
    """Yield the problems of one cell; `runs`: the runs that its outputs show.

    `must_run`: it is a problem if the cell did not run. `has_run`: it did, perhaps not to its end.
    """
    if cell.get("cell_type") != "code":
        return
    is_agent = agent_cell(source_of(cell)) is not None
    code_runs = [run for run in runs if "ordinal" in run]
    prompt_runs = [run for run in runs if "ordinal" not in run] if is_agent else []
    # a failure that repeats the error of a run is left out if a problem of the run reports it
    reported = [*prompt_runs, *(run for run in code_runs if not _passes(run))]
    errors = [str(run["error"]) for run in reported if run.get("error")]
    own_failures = [f for f in failed if not any(error in f.message for error in errors)]
    if is_agent:
        run = next(iter(prompt_runs), None)
        yield from _check_agent_cell(
            number, cell, _select_prompted(recorded.listed), recorded.faults, run, must_run=must_run
        )
    begun = _select_begun(recorded.listed, runs)
    if begun and must_run and not (has_run or is_agent):
        yield Problem(text=f"{name_cell(number, cell)}: it did not run", kind="error", stale=False)
    must_begin = has_run and not (own_failures if is_agent else failed)
    yield from _check_code_runs(number, cell, begun, code_runs, must_run=must_begin)
    yield from (Problem(text=str(f), kind=f.kind, stale=False) for f in own_failures)


def _select_begun(listed: Sequence[Record], runs: Sequence[RunNumbers]) -> Sequence[Record]:
    """Return the records of runs that a cell's code began in its newest execution.

    Those without `execution` may be of runs that the cell only followed, as with `attach`. The
    outputs show such a run without `ordinal`: a record is left out for each.
    """
    begun = CellRecords(listed).select_begun()
    if any(record.get("execution") for record in begun):
        return begun
    return begun[sum("ordinal" not in run for run in runs) :]


def _check_agent_cell(
    number: int,
    cell: Mapping[str, Any],
    records: Sequence[Record],
    faults: Sequence[str],
    run: RunNumbers | None,
    *,
    must_run: bool,
) -> Iterator[Problem]:
    """Yield the problems of the run of an agent cell (None: it did not run).

    `records`: those of the cell. `faults`: those of the record that its replay plays.
    """
    name = name_cell(number, cell)
    if not records:
        yield Problem(text=f"{name}: there is no record", kind="unrecorded")
        return
    yield from (Problem(text=f"{name}: {problem}") for problem in faults)
    expected = (run["expect"],) if run and run.get("expect") else PASSING
    if run is None:
        if must_run:
            yield Problem(text=f"{name}: it did not run", kind="error", stale=False)
    elif not run.get("replayed"):
        yield _describe_not_replayed(name, run)
    elif drift := run.get("drift"):
        yield _describe_drift(name, drift)
    elif run.get("status") not in expected and not run.get("imported"):
        # an imported run may end with any status
        yield Problem(
            text=f"{name}: the recorded run ended with status {run.get('status')}", kind="status"
        )
    yield from _list_changes(name, run or RunNumbers())


def _describe_not_replayed(name: str, run: RunNumbers) -> Problem:
    """Return the problem that a run was not replayed, with what differs from the record."""
    reason = f"{name}: {run.get('error') or 'it was not replayed'}"
    return Problem(text="\n".join([reason, *map(str, as_list(run.get("differences")))]))


def _list_changes(name: str, run: RunNumbers) -> Iterator[Problem]:
    """Yield changes since the recording, such as changed code, but not results of calls."""
    for change in map(as_dict, as_list(run.get("changes"))):
        text, is_warning = f"{name}: {change.get('text')}", bool(change.get("warning"))
        yield Problem(text=text, kind="changed", warning=is_warning)


def _check_code_runs(
    number: int,
    cell: Mapping[str, Any],
    records: Sequence[Record],
    runs: Sequence[RunNumbers],
    *,
    must_run: bool,
) -> Iterator[Problem]:
    """Yield the problems of the runs that Python code of a cell began.

    `records`: those of such runs in the cell's newest execution. A `scripted` run, whose model is
    a script, needs no record.
    """
    name = name_cell(number, cell)
    for run in runs:
        if drift := run.get("drift"):
            yield _describe_drift(name, drift)
        elif not _passes(run):
            yield _describe_not_replayed(name, run)
        elif run.get("scripted") and run.get("calls") and run.get("calls") == run.get("denied"):
            yield Problem(
                text=f"{name}: every call of a run was denied: {count_noun(run['calls'], 'call')} ({run['denied']} denied)",
                kind="status",
                stale=False,
            )
        yield from _list_changes(name, run)
    replayed_count = sum(bool(r.get("replayed")) for r in runs)
    if must_run and replayed_count < len(records):
        yield Problem(
            text=f"{name}: {len(records) - replayed_count} of {len(records)} recorded runs did not begin"
        )


def _passes(run: RunNumbers) -> bool:
    """Return whether a run that Python code began was replayed without drift, or is scripted."""
    return not run.get("drift") and bool(run.get("replayed") or run.get("scripted"))


def _describe_drift(name: str, numbers: Any) -> Problem:
    """Return a drift as a problem: its first event, both sides, and why the function ran again."""
    drift = as_dict(numbers)
    if how := drift.get("how"):
        difference = [str(how)]
    else:
        recorded, fresh = str(drift.get("recorded", "")), str(drift.get("fresh", ""))
        difference = SideBySide(recorded, fresh).unified_diff()
    tool, seq = drift.get("name"), drift.get("seq")
    call = f" (call {drift['call_id']})" if drift.get("call_id") else ""
    head = f"{name}: {tool} gave another result when it ran again: event {seq}, the result of {tool}{call}"
    variables = ", ".join(map(str, as_list(drift.get("reads"))))
    advice = f'{tool} runs again because it uses {variables} of the notebook; @tool(effect="none") plays it from the record'
    return Problem(text="\n".join([head, *difference, *([advice] * bool(variables))]), kind="drift")
