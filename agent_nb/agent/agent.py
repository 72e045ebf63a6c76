"""An agent: a model, tools and limits. Called with a prompt, it returns the stream of a run.

Rules
- No concrete model, dialect, tool or codec is imported: `plugins` and `models.choose` resolve
  names. The notebook passes in its host, asker and folder.
- An `Agent` holds no run state: runs of one agent may interleave.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from .. import events
from ..errors import UsageError, unknown_name
from ..events import Event
from ..events.log import EventLog
from ..host import plugins
from ..host.imports import verify
from ..host.trust import Offer
from ..models import offline
from ..record.given import Given
from ..wire.redact import Redaction
from . import display
from .assembly import make_basis, plan, player
from .attachments import pictures_of, without_text
from .compaction import STRATEGIES
from .context import Context
from .drift import Resume
from .limits import Limits, limits_from
from .loop import Loop
from .model_choice import ModelChoice
from .registry import Questions
from .replay_check import Wish
from .run import Run
from .run_spec import Plan
from .stream import Asked, Replay, Stream, finished
from .tape import Tape
from .typed.output_type import OutputType

if TYPE_CHECKING:
    from ..dialects.base import Dialect
    from ..models.base import Model
    from ..tools.base import Asker, Host, Tool
    from ..tools.policy import Policy
    from ..tools.toolset import Toolset


class Agent:
    """A model with tools.

    `model`: a `Model`, a name such as `openai/gpt-5`, or None to choose by configuration; several
    (a list, or `a/x,b/y`): the next one goes on when one is away or overloaded. `tools`:
    functions, `Tool`s or names of built-ins. `approve`: `ask`, `auto`, `deny` or the path of a
    policy file. `limits`: any of `turns tool_calls failures tokens cost seconds`. `settings`:
    sampling values (`temperature seed max_tokens stop reasoning top_p extra_body`). `folder`: where
    file tools may look. `secrets`: values by name that must not appear anywhere (default: those
    known when a run starts). `late`: resolve the model on first use, so that a replay needs neither
    the model nor a key; a wrong name is reported only then. `memory`: how to shorten a conversation
    that exceeds the model's context, `window` or `summary`. `thought_tags`: names of tags that hold
    thoughts, besides think and thinking. `namespace`: where the names of functions, models and
    policies are looked up (policies: in `__main__` by default). `mentioned` returns names of
    further tools that a policy may mention. `model_source`: where the name of the model came from,
    for the record. `output`: the type of the answer (see `output_type`), for `run.output`.
    """

    def __init__(
        self,
        model: Model | str | Sequence[Model | str] | None = None,
        tools: Sequence[Any] = (),
        *,
        system: str | None = None,
        dialect: str | None = None,
        approve: str | None = None,
        limits: Mapping[str, Any] | Limits | None = None,
        settings: Mapping[str, Any] | None = None,
        name: str = "",
        folder: str | os.PathLike[str] = ".",
        host: Host | None = None,
        ask: Asker | None = None,
        trace_id: str = "",
        secrets: Mapping[str, str] | None = None,
        namespace: Mapping[str, Any] | None = None,
        late: bool = False,
        memory: str = "window",
        thought_tags: Sequence[str] = (),
        mentioned: Callable[[], Collection[str]] = tuple,
        model_source: str = "",
        output: Any = None,
    ) -> None:
        verify()
        from ..tools.toolset import resolve

        self.folder = os.fspath(folder)
        self.choice = ModelChoice(model, namespace or {}, self.folder, model_source)
        self._namespace, self._mentioned = namespace, mentioned
        self._dialect = dialect or ""
        if self._dialect or not (late or offline.barred()):
            assert self.dialect
        self.tools = resolve(tools, namespace or {})
        self.system = system or ""
        self.approve = approve or "ask"
        self.limits = limits_from(limits)
        self.settings = dict(settings or {})
        if memory not in STRATEGIES:
            raise UsageError(unknown_name("memory strategy", memory, STRATEGIES))
        self.memory = memory
        self.thought_tags = tuple(thought_tags)
        self.name = name
        self.host = host
        self.ask = ask
        self.trace_id = trace_id
        self.secrets = secrets
        self.output = None if output is None else OutputType(output)

    @property
    def model(self) -> Model:
        """The model. Raises UsageError if its name is unknown."""
        return self.choice.model

    @property
    def dialect(self) -> Dialect:
        """The dialect given, else the model's. Raises as `model` does."""
        return self.dialect_of(self.model)

    def dialect_of(self, model: Model) -> Dialect:
        """Return the dialect that `model` is asked in. Raises UsageError if it is unknown."""
        found: Dialect = plugins.load("dialects", self._dialect or model.dialect)
        return found

    def __call__(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
        notes: Sequence[str | events.State] = (),
        resume: Resume | None = None,
        context: Context | str | None = None,
        view: str | None = "auto",
        check: bool = True,
        record: bool = True,
    ) -> Stream:
        """Return the stream of a new run, which starts when it is started, iterated or awaited.

        `history`: events of earlier runs of the conversation, oldest first. They are trusted: check
        foreign records first. `notes`: remarks on the conversation for the log. `resume`: where a
        replay drifted; the run continues from there. `context`: what the model is given about the
        notebook of the running cell (`auto`, `vars`, `cells`, `none`; None: its default); elsewhere
        there is nothing to give. `view`: how a notebook cell that awaits the
        run shows it (`auto`, `widgets`, `html`, `text`; None: not at all). `record`: let a notebook
        record the run, and replay it where nothing runs live (`offline`).

        Awaiting the stream returns the run. It raises RunFailed for a run that ended in an error,
        unless `check` is False. Raises UsageError on an empty prompt.
        """
        if not prompt.strip() and not attachments:
            raise UsageError("The prompt is empty. Write what the agent should do.")
        log = EventLog()
        redaction = self._redaction()
        said, pictures = redaction.value(prompt), pictures_of(attachments)
        user = events.User(content=said, attachments=without_text(pictures), origin="user")
        questions = Questions()
        given = self._given(redaction, said, pictures, history)
        beside = (
            context
            if isinstance(context, Context)
            else display.context(context, self.tools, prompt, hosted=self.host is not None)
        )
        ask = questions.beside(self.ask)

        @cache
        def make() -> Plan:
            return plan(make_basis(self, redaction), log, given, notes, ask=ask, context=beside)

        if not offline.barred():  # offline, the model may be unknown
            make()
        asked = Asked(
            user,
            given,
            self.tools,
            self.choice.is_script,
            partial(player, self, log=log, redaction=redaction),
        )
        return Stream(
            log,
            lambda scope: Loop(make(), log, user, history, scope, resume=resume),
            questions,
            view=view,
            check=check,
            asked=asked if record else None,
            output=self.output,
        )

    def given(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
    ) -> Given:
        """Return the inputs of a run. The model is not needed."""
        redaction = self._redaction()
        return self._given(redaction, redaction.value(prompt), pictures_of(attachments), history)

    def inputs(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
    ) -> dict[str, str]:
        """Return the digests of the run's inputs, by which `record.match` finds its record."""
        return self.given(prompt, attachments=attachments, history=history).inputs

    def replay(self, tape: Tape, *, check: bool = True, wish: Wish | None = None) -> Replay:
        """Return the stream of a recorded run. With `tape.live` it ends early at a drift.

        `check`: as in a call of the agent. `wish`: how strictly a test compares. Raises UsageError
        for a faulty policy file.
        """
        log = EventLog(tape.run)
        redaction = self._redaction()
        make = player(self, tape, wish, log=log, redaction=redaction)
        return Replay(log, make, check=check, output=self.output)

    def policy(self) -> Policy:
        """Return the policy as its file is now. Raises UsageError if it is faulty."""
        from ..tools.policy_check import checked
        from ..tools.policy_file import load

        namespace = vars(sys.modules["__main__"]) if self._namespace is None else self._namespace
        found = load(self.approve, self.folder)
        return checked(found, self.tools, namespace, self._mentioned)

    def offers(self, *, live: bool) -> list[Offer]:
        """Return what the folder offers for a run and the user has not allowed.

        `live`: a run that needs the model. Raises UsageError for a faulty policy.
        """
        keys = [getattr(m, "withheld", None) for m in self.choice.models] if live else []
        found = (self.policy().offer, *(key() for key in keys if key))
        return [offer for offer in found if offer is not None]

    def _redaction(self) -> Redaction:
        from ..models import keys

        return Redaction(keys.secrets(self.secrets))

    def run_sync(self, prompt: str, *, check: bool = True, **options: Any) -> Run:
        """Run to the end and return the run; for scripts.

        `check`: raise RunFailed for a run that ended in an error. Raises UsageError inside a
        running event loop, where `await agent(prompt)` works.
        """
        __tracebackhide__ = True
        run = finished(lambda: self(prompt, **options, check=False))
        return run.raise_for_status() if check else run

    def as_tool(self, name: str = "", description: str = "") -> Tool:
        """Return a tool that prompts this agent and returns its answer; see `subagent`.

        Raises UsageError without a name.
        """
        from .subagent import as_tool

        return as_tool(self, name, description)

    def within(
        self,
        *,
        host: Host | None,
        ask: Asker | None,
        trace_id: str | None = None,
        limits: Limits | None = None,
    ) -> Agent:
        """Return a copy with another host and asker, for a cell or another agent's run.

        `trace_id`, `limits`: those of the other run (None: unchanged).
        """
        child = copy.copy(self)
        child.host, child.ask = host, ask
        child.trace_id = self.trace_id if trace_id is None else trace_id
        child.limits = limits or self.limits
        return child

    def equipped(self, tools: Toolset) -> Agent:
        """Return a copy with other tools."""
        child = copy.copy(self)
        child.tools = tools
        return child

    async def aclose(self) -> None:
        """Close the model's connections, if the model was used."""
        await self.choice.aclose()

    def _given(
        self,
        redaction: Redaction,
        said: str,
        pictures: Sequence[dict[str, Any]],
        history: Sequence[Sequence[Event]],
    ) -> Given:
        settings = redaction.value(
            {"system": self.system, "sampling": self.settings, "dialect": self._dialect}
        )
        return Given(
            prompt=said,
            attachments=pictures,
            model=self.choice.identity,
            tools=self.tools.asked,
            settings=settings,
            history=history,
            output=self.output.described(redaction) if self.output is not None else None,
        )
