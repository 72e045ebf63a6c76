"""Assembles what a run of an agent needs: the plan of a live run, or the player of a replay.

`configuration` has what the user configured; this file builds the parts of one run. No state here:
runs of one agent may interleave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import CancelScope

from ..events import EventLog, State
from ..host import load_plugin
from ..models import ImageBlock, Message, Tariff, TextBlock
from ..record import RunInputs
from ..wire import Redaction, dumps
from . import display
from .configuration import Configuration
from .context import Context
from .dependencies import CodeReader, digest_dependencies
from .history import CHARS_PER_TOKEN, estimate_tokens
from .masking.surroundings import describe_place
from .parse import with_thought_tags
from .recorded_turns import RecordedTurns
from .replay import Player
from .replay_approver import ReplayApprover
from .replay_check import ReplayCheck, ReplayStrictness
from .request import write_opening
from .run_spec import Plan
from .typed.output_way import OutputWayChooser
from .vision import is_blind

if TYPE_CHECKING:
    from ..dialects import Dialect
    from ..models import Model
    from ..tools import ApprovalSource, Approver, Host, Policy, ToolRunner

FALLBACK_DIALECT = "xml"
# setting in `run_start`: Python code began the run, and its tools worked in the kernel
SHARED = "shared"


class Basis(msgspec.Struct, frozen=True):
    """What the live runs of one agent share: made for each run, or once for all rows of a map.

    `models`: each with its dialect, the preferred one first. `fallback_dialect`: used if a server
    accepts no tools. `start`: the fields of `run_start` that do not depend on the prompt.
    `tariffs`: prices, by the name of the model.
    """

    agent: Configuration
    redaction: Redaction
    policy: Policy
    models: Sequence[tuple[Model, Dialect]]
    fallback_dialect: Dialect
    start: Mapping[str, Any]
    tariffs: Mapping[str, Tariff]

    @classmethod
    def of(cls, agent: Configuration, redaction: Redaction) -> Basis:
        """Return what the live runs of `agent` share.

        Raises UsageError for a key in a text that must be sent unchanged, an unsuitable dialect, a
        faulty policy, or a budget while the price of a model is unknown.
        """
        models = [
            (model, _choose_dialect(agent, model, redaction)) for model in agent.choice.models
        ]
        fallback_dialect = load_plugin("dialects", FALLBACK_DIALECT)
        return cls(
            agent=agent,
            redaction=redaction,
            policy=agent.policy(),
            models=models,
            fallback_dialect=with_thought_tags(fallback_dialect, agent.thought_tags),
            start=_shared_start_fields(agent, redaction),
            tariffs={model.name: Tariff.of(model) for model, _ in models},
        )

    def plan(
        self,
        log: EventLog,
        inputs: RunInputs,
        notes: Sequence[str | State],
        *,
        ask: ApprovalSource,
        context: Context,
    ) -> Plan:
        """Return the plan of one live run, which writes `log`.

        `inputs`: those of the run, for its record. `notes`: remarks on the conversation, for the
        log. `ask`: answers questions for approval. `context`: about the notebook.
        """
        from ..models import Failures
        from ..tools import KERNEL_PERMISSIONS, Approver

        agent, redaction = self.agent, self.redaction
        (model, dialect), *others = [
            (_start_model(model), dialect) for model, dialect in self.models
        ]
        # each model may take over, so the text must fit into the smallest context
        sizes = [m.context for m, _ in self.models if m.context]
        # a stranger's turns may have prompted a call: approvals of earlier runs do not count
        foreign = any(isinstance(note, State) and note.kind == "foreign_turns" for note in notes)
        approver = Approver(self.policy, ask, None if foreign else KERNEL_PERMISSIONS)

        async def add_late_tools(status: Callable[[str], object]) -> Plan:
            agent_with_servers, lists = await agent.with_servers(redaction, status)
            basis = Basis.of(agent_with_servers, redaction)
            return basis.plan(log, inputs, [*notes, *lists], ask=ask, context=context)

        return Plan(
            model=model,
            dialect=dialect,
            fallback_models=tuple(others),
            fallback_dialect=self.fallback_dialect,
            tools=agent.tools.specs,
            default_tools=agent.tools.is_unchosen,
            runner=_make_runner(agent, approver, log, redaction),
            limits=agent.limits,
            redaction=redaction,
            retry_delay=Failures.choose_delay,
            system=agent.system,
            memory=agent.memory,
            settings=agent.settings,
            start=_start_fields(self.start, inputs),
            notes=tuple(notes),
            warnings=redaction.value(self.policy.remarks),
            context=context.fit_to(min(sizes, default=0)),
            add_late_tools=add_late_tools if agent.tools.late else None,
            output=agent.output,
            tariffs=self.tariffs,
        )

    def estimate_repeated_tokens(self) -> int:
        """Estimate the tokens that every request repeats: instructions, tools, answer schema."""
        agent, (model, dialect) = self.agent, self.models[0]
        tools = agent.tools.specs
        output = None if agent.output is None else agent.output.wire
        output_way = OutputWayChooser(output, model, tools).choose(dialect)
        opening = write_opening(dialect, tools, output_way, (agent.system,), shots=model.shots)
        sent_apart: list[Any] = [] if output_way.schema is None else [output_way.schema.schema]
        if dialect.native:
            sent_apart += map(msgspec.to_builtins, (*tools, *output_way.tools))
        tokens_apart = sum(len(dumps(value)) // CHARS_PER_TOKEN + 1 for value in sent_apart)
        return estimate_tokens(opening) + tokens_apart

    def estimate_prompt_tokens(self, prompt: str, pictures: int) -> int:
        """Estimate the tokens of one prompt and its pictures; a blind model is sent no picture."""
        visible = 0 if is_blind(self.models[0][0]) else pictures
        picture = ImageBlock("image/png", "")  # counts as any picture does
        return estimate_tokens([Message("user", (*[picture] * visible, TextBlock(prompt)))])


def share_host(plan: Plan, host: Host | None) -> Plan:
    """Return the plan of a run whose tools work with `host`; its record notes that (`SHARED`).

    Sets the host of the plan's runner. Without `host`, or if the runner has one, the plan stays.
    """
    if host is None or plan.runner.host is not None:
        return plan
    plan.runner.host = host
    settings = {**plan.start.get("settings", {}), SHARED: True}

    async def add_late_tools(status: Callable[[str], object]) -> Plan:
        assert plan.add_late_tools is not None
        return share_host(await plan.add_late_tools(status), host)

    return msgspec.structs.replace(
        plan,
        start={**plan.start, "settings": settings},
        add_late_tools=None if plan.add_late_tools is None else add_late_tools,
    )


def _choose_dialect(agent: Configuration, model: Model, redaction: Redaction) -> Dialect:
    """Return the dialect of a model. Raises UsageError if the model cannot be used."""
    dialect = agent.dialect_of(model)
    agent.require_no_keys(model.name, redaction)
    if (check := getattr(model, "check_dialect", None)) is not None:
        check(native=dialect.native)
    Tariff.of(model).check_budget(model.name, agent.limits.cost)
    return with_thought_tags(dialect, agent.thought_tags)


def _start_model(model: Model) -> Model:
    """Return the model for one run: `model.start()` if the model keeps state for each run."""
    start = getattr(model, "start", None)
    return start() if start else model


def make_player(
    agent: Configuration,
    turns: RecordedTurns,
    strictness: ReplayStrictness | None,
    *,
    log: EventLog,
    redaction: Redaction,
) -> Callable[[CancelScope], Player]:
    """Return a function that takes a cancel scope and makes the player of recorded turns.

    `strictness`: how strictly a test compares (None: as in any replay).
    """
    if agent.tools.late:  # a replay starts no MCP server: it takes their tools from the record
        agent = agent.with_tools(agent.tools.with_recorded(turns.events))
    policy = agent.policy()
    runner = _make_runner(agent, ReplayApprover(turns, policy, agent.ask), log, redaction)

    def make_agent_runner(child: Configuration) -> ToolRunner:
        approver = ReplayApprover(turns, child.policy(), agent.ask)
        return _make_runner(child, approver, log, redaction, host=child.host or runner.host)

    def make(scope: CancelScope) -> Player:
        if turns.setting(SHARED) is True:
            runner.host = runner.host or display.entered_host()
        strict = None
        if strictness is not None:
            strict = ReplayCheck(turns, strictness, agent.tools, policy, agent.folder)
        return Player(
            turns, log, runner, redaction, scope, strict=strict, make_agent_runner=make_agent_runner
        )

    return make


def _make_runner(
    agent: Configuration,
    approver: Approver,
    log: EventLog,
    redaction: Redaction,
    host: Host | None = None,
) -> ToolRunner:
    """Return the runner of the agent's tools; they work with `host`, else with the agent's."""
    from ..tools import ToolRunner

    return ToolRunner(
        agent.tools,
        approver=approver,
        host=host or agent.host,
        folder=agent.folder,
        trace_id=agent.trace_id or log.run,
        redaction=redaction,
    )


def _shared_start_fields(agent: Configuration, redaction: Redaction) -> Mapping[str, Any]:
    """Return the fields of `run_start` that all runs share: what decides their outcome."""
    value = redaction.value
    settings: dict[str, Any] = value(
        {
            "system": agent.system,
            "sampling": agent.settings,
            "approve": agent.approve,
            "limits": msgspec.to_builtins(agent.limits),
            "source": agent.choice.source,
            "asked": agent.choice.identity,
        }
    )
    # the inputs of a run name tools and references (MCP servers) as the user chose them
    if agent.tools.chosen != agent.tools.names:
        settings["asked_tools"] = list(agent.tools.chosen)
    if agent.output is not None:
        settings["output"] = agent.output.described(redaction)
    settings["place"] = value(describe_place(agent.folder))
    # what the run depends on besides its inputs: tools and sub-agents
    if digests := digest_dependencies(agent.tools, CodeReader(folder=agent.folder)):
        settings["behind"] = digests
    names = value({"agent": agent.name, "model": agent.model.name, "dialect": agent.dialect.name})
    return {**names, "tools": agent.tools.names, "settings": settings}


def _start_fields(shared: Mapping[str, Any], inputs: RunInputs) -> Mapping[str, Any]:
    """Return the fields of `run_start`: the shared fields, the run's inputs and their hash."""
    settings = {**shared["settings"], "inputs": dict(inputs.digests), "hash": inputs.digests.hash}
    if inputs.turn_digests:
        settings["turns"] = inputs.turn_digests
    return {**shared, "settings": settings}
