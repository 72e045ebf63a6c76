"""The commands of recorded runs: `%agent status`, `recover` and `forget`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...events import Interrupt
from ...record import METADATA_KEY, RECORD_MIME, Journal, RunNumbers
from ...view import clip_text, count_noun
from ..notices import format_date
from ..yes_no import ask_yes_no
from .output import Rows, print_text, show_parts
from .permissions import describe_allowed
from .runs import choose_id

if TYPE_CHECKING:
    from ...record import RecoverableRun
    from ..files.recovery import LostRuns
    from ..session import Session

_OTHERS = "other notebooks", "recover others"  # `whose` and `command` of `_count_lost`


def show_status(session: Session, _: list[str]) -> None:
    """the agent cells: recorded, stale or unrecorded; the conversations, turn by turn; runs that
    were lost; stored rows of maps; tools allowed for now
    """
    from ..files import map_stores

    records = [r for r in session.library.list_records(None) if session.library.is_own(r)]
    runs = (run for listed in session.runs.values() for run in listed)
    parts = (
        _cell_table(session),
        _cleared_remark(session),
        _turn_table(session),
        _lost_remark(session),
        map_stores.make_stores_table(records, runs),
        map_stores.describe_stores(),
        describe_allowed(),
    )
    show_parts(session, *([p for p in parts if p] or ["No cell has run an agent yet."]))


def _cell_table(session: Session) -> Rows:
    from ..cell.staleness import list_cell_states

    cells = list_cell_states(session)
    rows = [(s.cell, s.state, format_date(s.recorded), s.prompt, s.why) for s in cells]
    return [("cell", "state", "recorded", "prompt", "why"), *rows] if rows else []


def _cleared_remark(session: Session) -> str:
    """Return a remark on cells with a record and without output, "" if there are none."""
    count = len(session.library.read_file().cleared_ids)
    cells = f"{count_noun(count, 'cell')} {'has' if count == 1 else 'have'} a record and no output"
    return f"{cells}: clearing outputs keeps records, %agent forget removes them" if count else ""


def _turn_table(session: Session) -> Rows:
    from ...agent import Run

    rows = [("conversation", "turn", "run", "status", "prompt")]
    for conversation in session.conversations:
        number = 0  # of a turn since the conversation began anew
        for turn in conversation.turns:
            number = 1 if turn.fresh else number + 1
            run = Run(turn.events)  # type: ignore[arg-type]  # turns of cells hold logs
            id_ = run.log[0].run if len(run.log) else "?"
            limit = Interrupt.limit_in(run.reason) if run.status == "limit" else ""
            status = f"{Interrupt.AT_LIMIT}{limit}" if limit else run.status
            rows.append((conversation.name, str(number), id_, status, clip_text(run.prompt, 60)))
    return rows if len(rows) > 1 else []


def _lost_remark(session: Session) -> str:
    """Return a remark on lost runs of this notebook and of others, "" if there are none."""
    lost = _find_lost(session)
    sides = (lost.here, lost.others)
    here, others = (sum(journal.status == "lost" for journal in side) for side in sides)
    of_here = _count_lost(here, "this notebook", "recover")
    return "; ".join(filter(None, (of_here, _count_lost(others, *_OTHERS))))


def _count_lost(count: int, whose: str, command: str) -> str:
    """Return how many runs were lost, and which command lists them, "" for none."""
    were = "was" if count == 1 else "were"
    return f"{count_noun(count, 'run')} of {whose} {were} lost: %agent {command}" if count else ""


def _find_lost(session: Session, *, unsaved: bool = False) -> LostRuns:
    """Return the lost runs; with `unsaved`, also the runs that this kernel holds and no file has.

    A run is lost if it never reached its notebook.
    """
    from ..files.recovery import find_lost_runs

    file, path = session.library.read_file(), str(session.library.finder.path() or "")
    if unsaved:
        return find_lost_runs(file, path)
    # key of a cell -> when its newest run that ended well began
    answered = {
        cell: max(run.log[0].ts for run in runs if run.status == "ok")
        for cell, runs in session.runs.items()
        if any(run.status == "ok" for run in runs)
    }
    return find_lost_runs(file, path, session.run_ids, answered)


def recover_runs(session: Session, arguments: list[str]) -> None:
    """[RUN|all|others]: the runs of this notebook that never reached it; with a run, or all, bring
    them back; `others`: those of other notebooks
    """
    from ..files.recovery import make_journal_table

    lost, unsaved = _find_lost(session), _find_lost(session, unsaved=True)
    if arguments == ["others"]:
        show_parts(session, *_list_lost(lost, others=True))
    elif arguments == ["all"] and lost.here:
        _bring_back(session, lost.here)
    elif arguments and arguments != ["all"]:
        all_journals = (*unsaved.here, *unsaved.others, *unsaved.superseded)
        by_id = {journal.header.run: journal for journal in all_journals}
        none = f"No lost run begins with {arguments[0]!r}. %agent recover lists them."
        _bring_back(session, [by_id[choose_id(arguments[0], by_id, "run", none)]])
    else:
        show_parts(session, *_list_lost(lost, others=False))
    if not arguments:
        offered = {j.header.run for j in (*lost.here, *lost.others, *lost.superseded)}
        if unsaved_here := [j for j in unsaved.here if j.header.run not in offered]:
            title = "Made by this kernel, not in the saved file (save it; if a page was closed meanwhile, recover):"
            show_parts(session, title, make_journal_table(unsaved_here))


def _bring_back(session: Session, journals: Iterable[RecoverableRun]) -> None:
    """Keep the runs of journals in this notebook, and show them."""
    from ...agent import Run
    from ...view import LiveView
    from ..cell.publish import publish_display
    from ..cell.summary import summarize_run
    from ..files.recovery import recover_run

    for journal in journals:
        log, record = recover_run(journal, session.library)
        run = Run(log)
        cell = session.cells.current(session.shell, "recover", run.id)
        session.keep_run(cell, run, "_agent")
        first, *further_parts = LiveView.make_parts(log, badge=f"recovered, ended {journal.status}")
        numbers = {METADATA_KEY: summarize_run(run)}
        publish_display({**first, RECORD_MIME: record}, numbers, {}, False)
        for part in further_parts:
            publish_display(part, {METADATA_KEY: {RunNumbers.PART: run.id}}, {}, False)


def _list_lost(lost: LostRuns, *, others: bool) -> list[Rows | str]:
    """Return the parts of a list of lost runs: of this notebook, or of other notebooks."""
    from ..files.recovery import make_journal_table

    journals = lost.others if others else lost.here
    whose = "other notebooks" if others else "this notebook"
    nothing = f"Nothing was lost: every run of {whose} is in a notebook, or its journal is gone."
    advice = "Bring one back with %agent recover RUN, or all of this notebook. What an open page still shows is kept when you save it."
    parts: list[Rows | str] = [make_journal_table(journals), advice] if journals else [nothing]
    if not others and lost.others:
        parts.append(_count_lost(len(lost.others), *_OTHERS))
    return parts


def forget_records(session: Session, arguments: list[str]) -> None:
    """[CELL …|all|maps]: remove the records of cells (by id; default: the latest run's) from the
    notebook, this kernel, the journals and the stores of maps; `maps`: all stored rows, after a yes
    """
    from ..cell.publish import publish_display
    from ..files import map_stores

    if arguments == ["maps"]:
        question = map_stores.make_forget_question()
        sure = not question or ask_yes_no(f"{question} [y]es, [n]o: ", empty_is_no=True)
        print_text(map_stores.forget_all() if sure else "Nothing was forgotten.")
        return
    keys = _choose_keys(session, arguments)
    recorded = session.library.list_records(keys)
    recorded_ids = {record.get("id") for record in recorded}
    run_keys = list(session.runs) if keys is None else keys
    runs = [run for key in run_keys for run in session.runs.pop(key, ())]
    own_records = [record for record in recorded if session.library.is_own(record)]
    ids = sorted({*session.library.forget_records(keys), *(run.id for run in runs)} - {""})
    for conversation in session.conversations:
        for key in keys if keys is not None else [t.cell for t in conversation.turns]:
            conversation.forget(key)
    for run_id in ids:
        Journal.remove(run_id)
    # rows of records that others made stay: their store may serve other notebooks
    unrecorded = (run for run in runs if run.id not in recorded_ids)
    rows, faults = map_stores.forget_maps(own_records, unrecorded)
    stored = f" with {count_noun(rows, 'stored row')}" if rows else ""
    count = f"{count_noun(len(ids), 'run')} forgotten{stored}"
    leave = "It leaves" if len(ids) == 1 else "They leave"
    text = f"{count}. {leave} the file with its next save; what the outputs show stays until you clear it."
    shown = {"text/plain": "\n".join([text, *faults])}
    publish_display(shown, {METADATA_KEY: {RunNumbers.FORGET: ids}}, {}, False)


def _choose_keys(session: Session, arguments: list[str]) -> list[str] | None:
    """Return the keys of the cells that the arguments name, None for all.

    An argument is the id of a cell, or its beginning; without one the cell of the latest run
    counts. Raises UsageError unless the id of just one cell with runs begins so.
    """
    known_keys = dict.fromkeys([*session.runs, *session.library.read_file().runs])
    if arguments == ["all"]:
        return None
    if not arguments:
        return [key for key, listed in session.runs.items() if session.latest in listed]
    known = ", ".join(known_keys) or "none"
    return [
        choose_id(
            name, known_keys, "cell", f"No cell with runs begins with {name!r}. Known: {known}."
        )
        for name in arguments
    ]
