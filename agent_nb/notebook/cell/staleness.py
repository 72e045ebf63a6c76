"""The state of a notebook's agent cells: recorded, stale (and which input changed), or unrecorded.

Why: users see which cells Run All will ask again, and whether a notebook is ready to commit.

Rules
- The text of a cell is the newer of two: as it ran in this kernel, or as it was saved. The
  conversation before it is what this kernel would send; for a cell that has not run here, it comes
  from intact records of the cells above.
- Only the expressions of a prompt and of `--map` are evaluated; a cell whose inputs cannot be
  computed is `unknown`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

import msgspec

from ...agent import Changes, RecordedTurns
from ...errors import AgentError
from ...events import Event
from ...record import Match, Record, RunInputs, agent_cell, events_of, is_intact, read_start_time
from ...rows import Agent, count_failed_rows
from ...view import clip_text, count_noun
from ..conversations import is_turn
from ..files.notebook_file import NotebookFile
from ..identity import Cell
from ..option_table import DEFAULT_CONVERSATION
from ..options import Options
from ..session import Session
from .attached_files import Attached
from .map_inputs import MapInputs
from .mentioned import MentionTargets
from .prepare import describe_agent, read_prompt
from .rerun import select_prompted

LONGEST_PROMPT = 50  # characters of a prompt
State = Literal[
    "recorded",  # a record has its inputs: it can be replayed
    "stale",  # the newest record has other inputs, or what its run used has changed
    "tampered",  # the record that would count was changed after it was made
    "unrecorded",  # it has no record
    "imported",  # it shows a run of another system (`--from`), which has no inputs
    "unknown",  # its inputs cannot be computed
]


class CellState(msgspec.Struct, frozen=True):
    """The state of one agent cell; `why` says what changed, failed or is unknown, or is ""."""

    cell: str  # its id
    prompt: str  # its beginning
    state: State
    why: str = ""
    # when the run of the record that a replay tries first began, in epoch seconds; 0: unknown
    recorded: float = 0.0


def list_cell_states(session: Session) -> list[CellState]:
    """Return the state of each agent cell, in order."""
    file = session.library.read_file()
    # conversation -> the recorded turns of the cells so far
    recorded: dict[str, list[Sequence[Event]]] = defaultdict(list)
    states = []
    for cell in _list_cells(file, session.started_cells):
        records = session.library.rank_records(cell)
        state: State = "imported"
        why = ""
        try:
            options = session.read_options(cell.line)
            if options.new:
                recorded[options.conversation].clear()
            if not options.source:
                agent = describe_agent(session, options)
                history = _choose_history(session, cell, options, recorded[options.conversation])
                state, why = _judge_cell(session, cell, options, agent, history)
        except AgentError as fault:
            state, why = "unknown", str(fault)
        # a cell that cannot be judged is a turn for the cells below all the same
        turn, conversation = _find_recorded_turn(cell, records, file)
        if turn:
            recorded[conversation].append(turn)
        began = read_start_time(records[0]) if records else 0.0
        states.append(CellState(cell.id, clip_text(cell.body, LONGEST_PROMPT), state, why, began))
    return states


def _list_cells(file: NotebookFile, started: Mapping[str, tuple[Cell, float]]) -> list[Cell]:
    """Return the agent cells of the file, then unsaved `started` ones in their order."""
    unsaved = {
        key: cell for key, (cell, when) in started.items() if cell.id and when > file.saved_at
    }
    cells = []
    for cell_id in file.cell_ids:
        parts = agent_cell(file.sources.get(cell_id, ""))
        if cell_id in unsaved:
            cells.append(unsaved.pop(cell_id))
        elif parts:
            cells.append(Cell(key=cell_id, id=cell_id, line=parts[0], body=parts[1]))
    return [*cells, *unsaved.values()]


def _judge_cell(
    session: Session, cell: Cell, options: Options, agent: Agent, history: Sequence[Sequence[Event]]
) -> tuple[State, str]:
    """Return the state of a cell after the runs of `history`, and why. Raises AgentError."""
    inputs = _compute_inputs(session, cell, agent, options, history)
    matched = Match.find(select_prompted(session.library.rank_records(cell)), inputs.digests)
    if matched.record is None:
        changed = f"{', '.join(matched.changed)} changed" if matched.changed else ""
        return matched.status, "; ".join(filter(None, (changed, matched.problem)))
    turns = RecordedTurns.of(matched.record, checked=True)
    tools = turns.choose_tools(agent.tools)
    targets = MentionTargets(session.shell, cell, session.library)
    attached = _split_attached(session, options).mentions
    compare = partial(targets.describe_changes, attached=attached)
    if changes := Changes.since(turns, tools, session.shell.user_ns, compare).list_used():
        return "stale", changes
    failed = count_failed_rows(turns.events)
    again = f"{count_noun(failed, 'row')} failed and will be asked again" if failed else ""
    return matched.status, again


def _choose_history(
    session: Session, cell: Cell, options: Options, recorded: Sequence[Sequence[Event]]
) -> Sequence[Sequence[Event]]:
    """Return the runs before a cell in its conversation; `recorded` if it has not run here."""
    conversation = next((c for c in session.conversations if c.name == options.conversation), None)
    if conversation is None or all(turn.cell != cell.key for turn in conversation.turns):
        return recorded
    return conversation.runs_before(cell.key, fresh=options.new)


def _compute_inputs(
    session: Session, cell: Cell, agent: Agent, options: Options, history: Sequence[Sequence[Event]]
) -> RunInputs:
    """Return the inputs that a run of the cell would have now. Raises AgentError."""
    prompt, namespace = read_prompt(session, cell, options), session.shell.user_ns
    if options.map:
        return MapInputs(prompt, options, namespace).run_inputs(agent)
    pictures = _split_attached(session, options).pictures
    attached = [*(namespace.get(name, name) for name in pictures), *prompt.pictures]
    return agent.make_inputs(prompt.text, attachments=attached, history=history)


def _split_attached(session: Session, options: Options) -> Attached:
    """Return the files of `--attach`; for a map none."""
    names = () if options.map else options.attach
    return Attached.split(names, session.shell.user_ns)


def _find_recorded_turn(
    cell: Cell, records: Sequence[Record], file: NotebookFile
) -> tuple[Sequence[Event], str]:
    """Return the turn of a cell, () if it has none, and the name of its conversation."""
    for record in records:
        # runs that code in the cell began have no conversation
        conversation = str(record.get("conversation", DEFAULT_CONVERSATION))
        if conversation and is_intact(record):
            events = events_of(record) if file.is_turn_of(cell.key, record) else ()
            return (events if events and is_turn(events) else ()), conversation
    return (), DEFAULT_CONVERSATION
