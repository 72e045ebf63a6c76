"""Prepare a cell's run: the inputs of the agent, the agent itself, and the run's journal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ...agent import Context, PromptTemplate, ReplayStrictness, Resume, Stream, Tape
from ...events import Event, EventLog, State, is_map
from ...host import read_launch
from ...record import Journal, Provenance, Record, RunInputs, events_of
from ...rows import Agent
from ...tools import ApprovalSource, Host
from ..conversations import Conversation, Turn, rebuild_remarks
from ..identity import Cell
from ..options import Options
from ..output_option import wanted_type
from ..session import Session
from .context import build_context
from .context_cells import cells_above
from .failed_cell import Question, failure_question
from .ran_cells import RanCell
from .rerun import Choice

if TYPE_CHECKING:
    from .mapped import Mapped

#: What a cell asks: a prompt in a conversation, or a prompt for each row of its data. The cell
#: treats both alike, by methods of the same names.
Asking: TypeAlias = "Inputs | Mapped"


class Inputs(msgspec.Struct, frozen=True):
    """What the agent of one cell is given.

    `history` are the runs of the conversation that it sees, `foreign` of them from records of
    others; `notes` are remarks on the conversation for the header of a live run.
    """

    question: Question
    attachments: list[Any]
    history: list[Sequence[Event]]
    foreign: int
    notes: list[str]

    @property
    def prompt(self) -> str:
        """What the user says."""
        return self.question.prompt

    def given(self, agent: Agent) -> RunInputs:
        """Return them with what the agent adds, as records are matched with them."""
        return agent.given(self.prompt, attachments=self.attachments, history=self.history)

    def settle(
        self,
        make: Callable[[], Choice],
        records: Sequence[Record],
        *,
        wanted: str,
        trust: bool | frozenset[str],
    ) -> Choice:
        """Return the choice between model and record, which `make` makes. Raises UsageError."""
        return make()

    def ask(
        self,
        agent: Agent,
        *,
        notes: Sequence[str | State],
        resume: Resume | None,
        context: Context,
    ) -> Stream:
        """Return the stream of a live run, which goes on where a replay drifted (`resume`)."""
        return agent(
            self.prompt,
            attachments=self.attachments,
            history=self.history,
            notes=[*self.notes, *notes],
            resume=resume,
            context=context,
            check=False,
            record=False,
        )

    def replay(self, agent: Agent, tape: Tape, wish: ReplayStrictness | None) -> Stream:
        """Return the stream of a recorded run."""
        return agent.replay(tape, check=False, wish=wish)

    def leave(self, namespace: dict[str, Any], options: Options) -> None:
        """Leave nothing: the run is all."""


def prompt_of(session: Session, cell: Cell, options: Options) -> Question:
    """Return the text of a cell with the values of its `{{ }}`, with `--fix` the question about the
    cell that failed. Raises UsageError.
    """
    pictures: list[dict[str, str]] = []
    prompt = cell.body.replace("\r\n", "\n").strip()
    if options.map:  # filled in for each row
        return Question(prompt)
    text = PromptTemplate(prompt).fill(session.shell.user_ns, pictures)
    result = (
        failure_question(session.shell, cell, session.library, text)
        if options.fix
        else Question(text)
    )
    return msgspec.structs.replace(result, pictures=pictures)


def prepare_inputs(
    session: Session, cell: Cell, options: Options, conversation: Conversation, question: Question
) -> Asking:
    """Return the inputs of a cell; rebuild its conversation from records at its first use."""
    if options.map:
        from .mapped import Mapped  # maps are a tenth of all that a cell loads; few cells have one

        return Mapped(question, options, session.shell.user_ns)
    rebuilt = 0 if options.new else session.rebuild(conversation, cell)
    names = session.shell.user_ns
    return Inputs(
        question,
        [*(names.get(name, name) for name in options.attach), *question.pictures],
        conversation.before(cell.key, fresh=options.new),
        conversation.foreign(cell.key, fresh=options.new),
        rebuild_remarks(rebuilt, conversation.later(cell.key)),
    )


def gather_context(
    session: Session, cell: Cell, options: Options, agent: Agent, prompt: str
) -> Context:
    """Return what the model is given about the notebook beside the prompt of a cell."""

    def before() -> list[RanCell]:
        return cells_above(session.shell, cell, session.library.file(cell.sent))

    return build_context(session.shell, options.context, agent.tools, prompt, above=before)


def make_agent(
    session: Session,
    cell: Cell,
    options: Options,
    *,
    host: Host,
    ask: ApprovalSource,
    secrets: Mapping[str, str],
) -> Agent:
    """Return the agent that a cell's options ask for. Raises UsageError."""
    return Agent(
        options.model,
        options.tools,
        system=options.system,
        dialect=options.dialect,
        approve=options.approve,
        limits=options.limits,
        settings=options.settings,
        folder=os.curdir,
        memory=options.memory,
        thought_tags=options.thought_tags,
        secrets=secrets,
        host=host,
        ask=ask,
        namespace=session.shell.user_ns,
        mentioned=lambda: session.library.file(cell.sent).tools,
        late=True,
        model_source=options.model_source,
        output=wanted_type(options, session.shell.user_ns),
    )


def use_recorded_turn(
    session: Session,
    cell: Cell,
    options: Options,
    conversation: Conversation,
    records: Sequence[Mapping[str, Any]],
) -> None:
    """Use the newest record as the turn of a cell that cannot be replayed.

    Without it the cells below would fail too.
    """
    newest = next((r for r in records if r.get("conversation") != Provenance.NO_CONVERSATION), None)
    if newest is None or not read_launch().why_not_live or is_map(events_of(newest)):
        return
    foreign = not session.library.owns(newest)
    turn = Turn(cell.key, events_of(newest), options.new, foreign=foreign)
    conversation.commit(turn, live=False)


def open_journal(session: Session, cell: Cell, options: Options, log: EventLog) -> Journal | None:
    """Write the events of a live run to a journal as they come; None with `--no-record`."""
    if not options.record:
        return None
    journal = Journal(
        log.run,
        cell=cell.key,
        notebook=str(session.library.path(cell.sent) or ""),
        conversation=options.conversation,
        warn=session.warn,
    )
    log.subscribe(journal)
    return journal
