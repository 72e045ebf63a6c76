"""The state of a notebook's agent cells: recorded, stale (and which input changed), or unrecorded.

Why: shows what Run All will cost, and whether a notebook is ready to commit, without running it.

Rules
- A cell counts as it ran in this kernel, or as the file has it, whichever is newer. A cell that ran
  since the last save and is not in the file comes last; one that a save left out is gone.
- The conversation before a cell is what this kernel would send; for a cell that has not run here,
  what whole records of the cells above say.
- Only the expressions of a prompt are evaluated, as the run would; a cell whose inputs cannot be
  computed says why.
- A cell is stale, too, if variables that its recorded run used look different now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...agent import Changes, PromptTemplate, Tape
from ...errors import AgentError
from ...events import Event, is_map
from ...record import Match, RunInputs, agent_cell, events_of, is_intact, read_start_time
from ...rows import Agent, count_failed_rows
from ...view import clip_text, count_noun
from ..files.library import File
from ..identity import Cell
from ..options import Options
from ..runner_options import NO_OPTIONS, RunnerOptions
from ..session import Session
from .failed_cell import Question, failure_question
from .mapped import Mapped

LONGEST = 50  # characters of a prompt


class Standing(msgspec.Struct, frozen=True):
    """The state of one agent cell."""

    cell: str
    prompt: str  # its beginning
    state: str  # one word
    why: str = ""
    recorded: float = 0.0  # epoch seconds; 0: unknown


def list_standings(
    session: Session,
    parse: Callable[[str], Options],
    make: Callable[[Options], Agent],
    namespace: dict[str, Any],
    sent: RunnerOptions = NO_OPTIONS,
) -> list[Standing]:
    """Return the state of each agent cell, in order.

    `parse` reads an option line; `make` returns its agent.
    """
    file = session.library.file(sent)
    logs: dict[str, list[Sequence[Event]]] = defaultdict(list)
    standings = []
    for cell in _cells(file, session.begun):
        records = session.library.of(cell)
        try:
            options = parse(cell.line)
            if options.new:
                logs[options.conversation].clear()
            here = next((c for c in session.conversations if c.name == options.conversation), None)
            knows = here is not None and any(turn.cell == cell.key for turn in here.turns)
            # a conversation that this kernel has run knows its turns better than the file does
            history = (
                here.before(cell.key, fresh=options.new)
                if here is not None and knows
                else logs[options.conversation]
            )
            state, why = "imported", ""
            if not options.source:
                agent = make(options)
                inputs = _inputs_of(session, cell, agent, options=options, history=history)
                state, why = _state(Match.find(records, inputs.digests), agent, namespace)
        except AgentError as fault:
            state, why = "unknown", str(fault)
        whole = next(filter(is_intact, records), None)
        turn = events_of(whole) if whole is not None and file.said_by(cell.key, whole) else []
        if whole is not None and turn and not is_map(turn):
            logs[str(whole.get("conversation", "main"))].append(turn)
        recorded = read_start_time(records[0]) if records else 0.0
        standings.append(Standing(cell.id, clip_text(cell.body, LONGEST), state, why, recorded))
    return standings


def _inputs_of(
    session: Session,
    cell: Cell,
    agent: Agent,
    *,
    options: Options,
    history: Sequence[Sequence[Event]],
) -> RunInputs:
    """Return the inputs of a cell as it stands."""
    namespace = session.shell.user_ns
    text_of_cell = cell.body.replace("\r\n", "\n").strip()
    if options.map:
        return Mapped(Question(text_of_cell), options, namespace).given(agent)
    pictures: list[dict[str, str]] = []
    prompt = PromptTemplate(text_of_cell).fill(namespace, pictures)
    attached = [*(namespace.get(name, name) for name in options.attach), *pictures]
    if options.fix:
        prompt = failure_question(session.shell, cell, session.library, prompt).prompt
    return agent.given(prompt, attachments=attached, history=history)


def _cells(file: File, begun: Mapping[str, tuple[Cell, float]]) -> list[Cell]:
    """Return the agent cells of the file in order, then those not saved yet by first run."""
    since = {key: cell for key, (cell, when) in begun.items() if cell.id and when > file.saved}
    cells = []
    for cell_id in file.order:
        parts = agent_cell(file.sources.get(cell_id, ""))
        cell = since.pop(cell_id, None) or (
            Cell(key=cell_id, id=cell_id, line=parts[0], body=parts[1]) if parts else None
        )
        cells += [cell] if cell is not None else []
    return [*cells, *since.values()]


def _state(matched: Match, agent: Agent, namespace: dict[str, Any]) -> tuple[str, str]:
    if matched.record is not None:
        tape = Tape.of(matched.record, checked=True)
        differs = Changes.since(tape, agent.tools, namespace).list_used()
        lost = count_failed_rows(tape.events)
        again = f"{count_noun(lost, 'row')} failed and will be asked again" if lost else ""
        return ("stale", differs) if differs else (matched.status, again)
    changed = f"{', '.join(matched.changed)} changed" if matched.changed else ""
    return matched.status, "; ".join(filter(None, (changed, matched.problem)))
