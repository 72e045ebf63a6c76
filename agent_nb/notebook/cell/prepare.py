"""Prepare a cell's run: its attachments, prompt, inputs, agent and context, in this order.

Why apart from `run`: `staleness` and `%agent context` prepare a cell that they do not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ...agent import Context, PromptTemplate
from ...rows import Agent
from ..conversations import Conversation, turn_remarks
from ..identity import Cell
from ..options import Options
from ..output_option import output_type
from ..session import Session
from .cell_prompt import CellPrompt
from .cell_tools import choose_tools
from .context import build_context
from .context_cells import cells_above
from .failed_cell import make_fix_prompt
from .mentioned import NO_REFERENCES, MentionTargets, References
from .prompt_inputs import PromptInputs

if TYPE_CHECKING:
    from .map_inputs import MapInputs

CellInputs: TypeAlias = "PromptInputs | MapInputs"


def load_attached(session: Session, options: Options) -> tuple[tuple[str, ...], References]:
    """Load the tables of `--attach` as variables; return its pictures, and texts about other files.

    With `--map` every name counts as a picture. Raises UsageError for an unusable file.
    """
    if options.map or not options.attach:
        return options.attach, NO_REFERENCES
    from .attached_files import Attached  # imported late: few cells attach a file

    attached = Attached.split(options.attach, session.shell.user_ns)
    return attached.pictures, attached.load(session.shell)


def read_prompt(session: Session, cell: Cell, options: Options) -> CellPrompt:
    """Return the prompt of a cell with the values of its `{{ }}`; a map fills them in for each row.

    With `--fix` the prompt is about the cell that failed. Raises UsageError.
    """
    source = cell.body.replace("\r\n", "\n").strip()
    if options.map:  # a map resolves no `@name`, so `CellPrompt.written` stays empty
        return CellPrompt(source)
    template = PromptTemplate(source)
    pictures: list[dict[str, str]] = []  # `fill` adds those among the values
    text = template.fill(session.shell.user_ns, pictures)
    prompt = CellPrompt(text)
    if options.fix:
        prompt = make_fix_prompt(session.shell, cell, session.library, text)
    return msgspec.structs.replace(prompt, written=template.written, pictures=pictures)


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
    earlier = conversation.turns_before(cell.key, fresh=options.new)
    return PromptInputs(
        prompt,
        attachments=[*(namespace.get(name, name) for name in pictures), *prompt.pictures],
        history=[turn.events for turn in earlier],
        foreign_count=sum(turn.foreign for turn in earlier),
        notes=turn_remarks(rebuilt, conversation.count_dropped(cell.key)),
    )


def describe_agent(session: Session, options: Options, **of_run: Any) -> Agent:
    """Return the agent that a cell's options describe. Raises UsageError.

    `of_run`: the parameters of `Agent` that only a run needs, not an inspection.
    """
    return Agent(
        options.model,
        choose_tools(options, session.shell.user_ns),
        system=options.system,
        dialect=options.dialect,
        settings=options.settings,
        namespace=session.shell.user_ns,
        late=True,  # a replay needs neither the model nor a key
        output=output_type(options.kind, session.shell.user_ns) if options.kind else None,
        **of_run,
    )


def gather_context(
    session: Session,
    cell: Cell,
    options: Options,
    agent: Agent,
    prompt: CellPrompt,
    *,
    attached: References = NO_REFERENCES,
) -> Context:
    """Return what the model reads besides the prompt; `attached`: files other than pictures.

    The rows of a map are sent nothing besides their prompts.
    """
    if options.map:
        return Context()
    targets = MentionTargets(session.shell, cell, session.library)
    return build_context(
        session.shell,
        options.context,
        agent.tools,
        prompt.text,
        always=True,  # a cell's model reads the list of variables even if no tool shares them
        above=lambda: cells_above(
            session.shell, cell, session.library.read_file(cell.runner_options)
        ),
        references=attached.joined(targets.resolve(prompt.written, prompt.text)),
    )
