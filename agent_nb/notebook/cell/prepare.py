"""Prepare a cell's run: the inputs of the agent, the agent itself, and the run's journal.

Why two classes of inputs: a cell asks one prompt in a conversation (`PromptInputs`), or a prompt
for each row of its data (`MapInputs`). Both have the same methods, so `cell.run` treats them alike.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ...agent import Context, PromptTemplate, RecordedTurns, ReplayStrictness, Resume, Stream
from ...events import Event, EventLog, State
from ...host import read_launch
from ...record import Journal, Provenance, Record, RunInputs, events_of
from ...rows import Agent
from ...tools import ApprovalSource, Host
from ..conversations import Conversation, Turn, is_turn, turn_remarks
from ..identity import Cell
from ..options import Options
from ..output_option import wanted_type
from ..session import Session
from .cell_prompt import CellPrompt
from .cell_tools import choose_tools
from .context import build_context
from .context_cells import cells_above
from .failed_cell import make_fix_prompt
from .mentioned import NOTHING_POINTED, MentionTargets, Pointed
from .ran_cells import RanCell
from .rerun import ReplayChoice, ReplayRules

if TYPE_CHECKING:
    from .map_inputs import MapInputs

CellInputs: TypeAlias = "PromptInputs | MapInputs"


class PromptInputs(msgspec.Struct, frozen=True):
    """The inputs of one prompt in a conversation."""

    prompt: CellPrompt
    attachments: list[Any]
    history: list[Sequence[Event]]  # the earlier runs of the conversation
    foreign: int  # how many of these come from other users' records
    notes: list[str]  # remarks on the conversation, for the header of a live run

    def run_inputs(self, agent: Agent) -> RunInputs:
        """Return the inputs of the agent's run, by which a record is found."""
        return agent.given(self.prompt.text, attachments=self.attachments, history=self.history)

    def choose(
        self, decide: Callable[[], ReplayChoice], records: Sequence[Record], rules: ReplayRules
    ) -> ReplayChoice:
        """Return the decision of `decide` between model and record; other arguments serve maps."""
        return decide()

    def start(
        self, agent: Agent, *, notes: Sequence[str | State], resume: Resume | None, context: Context
    ) -> Stream:
        """Return the stream of a live run, which goes on where a replay drifted (`resume`)."""
        return agent(
            self.prompt.text,
            attachments=self.attachments,
            history=self.history,
            notes=[*self.notes, *notes],
            resume=resume,
            context=context,
            check=False,  # the cell itself fails, and makes the record
            record=False,
        )

    def replay(
        self, agent: Agent, turns: RecordedTurns, strictness: ReplayStrictness | None
    ) -> Stream:
        """Return the stream of a recorded run; `strictness`: see `replay_strictness`."""
        return agent.replay(turns, check=False, wish=strictness)

    def publish(self, namespace: dict[str, Any], options: Options) -> None:
        """A single prompt publishes nothing besides its run; a map publishes itself."""


def read_prompt(session: Session, cell: Cell, options: Options) -> CellPrompt:
    """Return the prompt of a cell with the values of its `{{ }}`; a map fills them in for each row.

    With `--fix` the prompt is about the cell that failed. Raises UsageError.
    """
    pictures: list[dict[str, str]] = []  # the template adds those that the text names
    written = cell.body.replace("\r\n", "\n").strip()
    if options.map:  # filled in for each row; without `written`, since `@name` means nothing here
        return CellPrompt(written)
    template = PromptTemplate(written)
    text = template.fill(session.shell.user_ns, pictures)
    prompt = CellPrompt(text)
    if options.fix:
        prompt = make_fix_prompt(session.shell, cell, session.library, text)
    return msgspec.structs.replace(prompt, written=template.written, pictures=pictures)


def load_attached(session: Session, options: Options) -> tuple[tuple[str, ...], Pointed]:
    """Load the tables of `--attach` as variables; return its pictures, and texts about other files.

    With `--map` every name counts as a picture. Raises UsageError for an unusable file.
    """
    if options.map or not options.attach:
        return options.attach, NOTHING_POINTED
    from .attached_files import Attached  # imported late: few cells attach a file

    attached = Attached.split(options.attach, session.shell.user_ns)
    return attached.pictures, attached.load(session.shell)


def prepare_inputs(
    session: Session,
    cell: Cell,
    options: Options,
    conversation: Conversation,
    prompt: CellPrompt,
    *,
    pictures: Sequence[str],
) -> CellInputs:
    """Return the inputs of a cell; rebuild its conversation from records at its first use.

    `pictures`: the variables and files with pictures that are attached.
    """
    namespace = session.shell.user_ns
    if options.map:
        # imported late: maps are a tenth of all that a cell imports, and few cells need them
        from .map_inputs import MapInputs

        return MapInputs(prompt, options, namespace)
    rebuilt = 0 if options.new else session.rebuild(conversation, cell)
    return PromptInputs(
        prompt,
        [*(namespace.get(name, name) for name in pictures), *prompt.pictures],
        conversation.before(cell.key, fresh=options.new),
        conversation.count_foreign(cell.key, fresh=options.new),
        turn_remarks(rebuilt, conversation.count_dropped(cell.key)),
    )


def gather_context(
    session: Session,
    cell: Cell,
    options: Options,
    agent: Agent,
    prompt: CellPrompt,
    *,
    attached: Pointed = NOTHING_POINTED,
) -> Context:
    """Return what the model reads besides the prompt; `attached`: files other than pictures.

    The rows of a map are sent nothing besides their prompts.
    """
    if options.map:
        return Context()

    def above() -> list[RanCell]:
        return cells_above(session.shell, cell, session.library.file(cell.runner_options))

    targets = MentionTargets(session.shell, cell, session.library)
    return build_context(
        session.shell,
        options.context,
        agent.tools,
        prompt.text,
        always=True,
        above=above,
        pointed=attached.joined(targets.resolve(prompt.written, prompt.text)),
    )


def make_agent(
    session: Session,
    cell: Cell,
    options: Options,
    *,
    host: Host,
    ask: ApprovalSource,
    secrets: Mapping[str, str],
) -> Agent:
    """Return the agent that a cell's options describe. Raises UsageError.

    `host` runs its tools in the kernel, `ask` answers its questions, `secrets` are kept out of its
    run. The agent is `late`: a replay needs neither the model nor a key.
    """
    return Agent(
        options.model,
        choose_tools(options, session.shell.user_ns),
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
        mentioned=lambda: session.library.file(cell.runner_options).possible_tools,
        late=True,
        model_source=options.model_source,
        output=wanted_type(options, session.shell.user_ns),
    )


def use_recorded_turn(
    session: Session,
    cell: Cell,
    options: Options,
    conversation: Conversation,
    records: Sequence[Record],
) -> None:
    """Use the newest record as the turn of a cell that cannot be replayed where nothing runs live.

    Elsewhere do nothing. Without the turn, the cells below would fail too, since their conversation
    would differ.
    """
    newest = next((r for r in records if r.get("conversation") != Provenance.NO_CONVERSATION), None)
    if newest is None or not read_launch().why_not_live or not is_turn(events_of(newest)):
        return
    foreign = not session.library.is_own(newest)
    turn = Turn(cell.key, events_of(newest), options.new, foreign=foreign)
    conversation.commit(turn, live=False)


def open_journal(session: Session, cell: Cell, options: Options, log: EventLog) -> Journal | None:
    """Write the events of a live run to a journal as they come; None with `--no-record`."""
    if not options.record:
        return None
    journal = Journal(
        log.run,
        cell=cell.key,
        notebook=str(session.library.finder.path(cell.runner_options) or ""),
        conversation=options.conversation,
        warn=session.warn,
    )
    log.subscribe(journal)
    return journal
