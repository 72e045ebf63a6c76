"""An agent: a model, tools and limits; called with a prompt it gives the stream of a run.

Rules
- It imports no concrete model, dialect, tool or codec and nothing of view, notebook or server:
  names are resolved by `plugins` and `models.choose`, and the notebook hands in its host, its asker
  and its folder.
- An `Agent` holds no state of a run: runs of one agent may interleave.
"""

from __future__ import annotations

import asyncio
import copy
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import CancelScope

from .. import events
from ..errors import UsageError, unknown_name
from ..events import Event
from ..events.log import EventLog
from ..host import plugins
from ..host.imports import verify
from ..host.trust import Offer
from ..models import offline
from ..record.fingerprint import inputs_hash
from ..record.given import Given
from ..wire.redact import Redaction
from . import outgoing
from .compaction import STRATEGIES
from .dependencies import behind, place
from .limits import Limits, limits_from
from .loop import Loop
from .model_choice import ModelChoice
from .registry import Questions
from .replay import Player, Resume
from .run import Run
from .run_spec import Plan
from .stream import Asked, Replay, Stream
from .strict import Strict, Wish
from .tape import Tape, TapeApprover

if TYPE_CHECKING:
    from ..dialects.base import Dialect
    from ..models.base import Model
    from ..tools.approval import Approver
    from ..tools.base import Asker, Host, Tool
    from ..tools.policy import Policy
    from ..tools.runner import ToolRunner

FALLBACK = "xml"
THOUGHT_TAGS = ("think", "thinking")


class Agent:
    """A model with tools.

    `model`: a `Model`, a name such as `openai/gpt-5`, or None to choose by configuration. `tools`:
    functions, `Tool`s or names of built-ins. `approve`: `ask`, `auto`, `deny` or the path of a
    policy file. `limits`: any of `turns tool_calls failures tokens cost seconds`. `settings`:
    sampling values (`temperature seed max_tokens stop reasoning top_p extra_body`). `folder`: where
    file tools may look. `secrets`: values by name that must not appear anywhere (default: those
    that are known when a run starts). `late`: the model is looked up when it is first needed, so
    that a replay needs neither the model nor a key; what is wrong with its name is then said only
    there. `memory`: what becomes of a conversation too long for the model, `window` or `summary`.
    `thought_tags`: further names of tags that hold thoughts, beside think and thinking.
    `namespace`: where names are looked up (of functions, models and policies; the latter in
    `__main__` by default); `mentioned` gives names of tools that a policy may speak of besides.
    """

    def __init__(
        self,
        model: Model | str | None = None,
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
    ) -> None:
        verify()
        from ..tools.toolset import resolve

        self.folder = os.fspath(folder)
        self.choice = ModelChoice(model, namespace or {}, self.folder)
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

    @property
    def model(self) -> Model:
        """The model. Raises UsageError when there is none of that name (an agent that is not `late`
        has asked before).
        """
        return self.choice.model

    @property
    def dialect(self) -> Dialect:
        """The dialect that was asked for, else the model's. Raises as `model`."""
        found: Dialect = plugins.load("dialects", self._dialect or self.model.dialect)
        return found

    def __call__(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
        notes: Sequence[str | events.State] = (),
        resume: Resume | None = None,
        view: str | None = "auto",
        check: bool = True,
        record: bool = True,
    ) -> Stream:
        """Return the stream of a new run. Nothing happens before it is started, iterated or
        awaited.

        `history` are the events of earlier runs of the conversation, oldest first. They are
        trusted: check foreign records before. `notes` are remarks on it for the log; `resume` is
        where a replay drifted: the run goes on from there. `view`: how a notebook cell that awaits
        it shows it (`auto`, `widgets`, `html`, `text`; None: not at all). `record`: a notebook
        keeps the run, and plays it where nothing runs live (`offline`). Raises UsageError on an
        empty prompt.

        Awaiting the stream gives the run and raises RunFailed when it ended in an error; with
        `check` False the run is returned then too.
        """
        if not prompt.strip() and not attachments:
            raise UsageError("The prompt is empty. Write what the agent should do.")
        log = EventLog()
        redaction = self._redaction()
        said, pictures = redaction.value(prompt), _images(attachments)
        user = events.User(content=said, attachments=_without_text(pictures), origin="user")
        questions = Questions()
        given = self._given(redaction, said, pictures, history)
        make = cache(
            lambda: self._plan(log, redaction, given, notes, ask=questions.beside(self.ask))
        )
        if not offline.barred():  # else the model may not even be known here
            make()
        asked = Asked(
            user,
            given,
            self.tools,
            self.choice.is_script,
            partial(self._player, log=log, redaction=redaction),
        )
        return Stream(
            log,
            lambda scope: Loop(make(), log, user, history, scope, resume=resume),
            questions,
            view=view,
            check=check,
            asked=asked if record else None,
        )

    def given(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
    ) -> Given:
        """Return what decides a run. The model is not needed for it."""
        redaction = self._redaction()
        return self._given(redaction, redaction.value(prompt), _images(attachments), history)

    def inputs(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
    ) -> dict[str, str]:
        """Return the digests of what decides a run, by which its record is found (`tape.match`)."""
        return self.given(prompt, attachments=attachments, history=history).inputs

    def replay(self, tape: Tape, *, check: bool = True, wish: Wish | None = None) -> Replay:
        """Return the stream of a recorded run; it ends with `end`, or early where `tape.live` and
        something drifted.

        `check` as in a call of the agent; `wish`: how strictly it is looked at, for a test. Raises
        UsageError for a faulty policy file.
        """
        log = EventLog(tape.run)
        return Replay(
            log, self._player(tape, wish, log=log, redaction=self._redaction()), check=check
        )

    def _player(
        self, tape: Tape, wish: Wish | None, *, log: EventLog, redaction: Redaction
    ) -> Callable[[CancelScope], Player]:
        policy = self.policy()
        runner = self._runner(TapeApprover(tape, policy, self.ask), log, redaction)

        def below(agent: Agent) -> ToolRunner:
            approver = TapeApprover(tape, agent.policy(), self.ask)
            return agent._runner(approver, log, redaction, host=agent.host or self.host)

        def player(scope: CancelScope) -> Player:
            strict = (
                Strict(tape, wish, self.tools, policy, self.folder) if wish is not None else None
            )
            return Player(tape, log, runner, redaction, scope, strict=strict, below=below)

        return player

    def policy(self) -> Policy:
        """Return the policy for the calls of a run, as its file is now. Raises UsageError for one
        that is faulty or names no tool.
        """
        from ..tools import policy, policy_check

        namespace = vars(sys.modules["__main__"]) if self._namespace is None else self._namespace
        return policy_check.checked(
            policy.load(self.approve, self.folder), self.tools, namespace, self._mentioned
        )

    def offers(self, *, live: bool) -> list[Offer]:
        """Return what the folder offers for a run (`live`: one that needs the model) and the user
        has not allowed. Raises UsageError.
        """
        key = getattr(self.model, "withheld", None) if live else None
        return [
            offer for offer in (self.policy().offer, key() if key else None) if offer is not None
        ]

    def _thinking(self, dialect: Dialect) -> Dialect:
        """Return `dialect` with the thought tags around it: the usual ones and those of
        the user.
        """
        filtered: Dialect = plugins.load("dialects", "thinking").over(
            dialect, (*THOUGHT_TAGS, *self.thought_tags)
        )
        return filtered

    def _redaction(self) -> Redaction:
        from ..models import keys

        return Redaction(keys.secrets(self.secrets))

    def run_sync(self, prompt: str, *, check: bool = True, **options: Any) -> Run:
        """Run to the end and return the run; for scripts.

        `check`: a run that ended in an error raises RunFailed. Raises UsageError inside a running
        event loop: `await agent(prompt)` there.
        """
        __tracebackhide__ = True
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            run = asyncio.run(self._finish(prompt, options))
            return run.raise_for_status() if check else run
        raise UsageError(
            "An event loop is running here (a notebook cell?): write `run = await agent(prompt)` instead of run_sync."
        )

    def as_tool(self, name: str = "", description: str = "") -> Tool:
        """Return a tool that gives this agent a prompt and returns its answer; see `subagent`.
        Raises UsageError without a name.
        """
        from .subagent import as_tool

        return as_tool(self, name, description)

    def within(
        self, *, trace_id: str, host: Host | None, ask: Asker | None, limits: Limits
    ) -> Agent:
        """Return a copy that runs within another agent's run."""
        child = copy.copy(self)
        child.trace_id, child.host, child.ask, child.limits = trace_id, host, ask, limits
        return child

    async def aclose(self) -> None:
        """Close the model's connections, if it was needed."""
        await self.choice.aclose()

    async def _finish(self, prompt: str, options: dict[str, Any]) -> Run:
        return await self(prompt, **options, check=False)

    def _plan(
        self,
        log: EventLog,
        redaction: Redaction,
        given: Given,
        notes: Sequence[str | events.State],
        *,
        ask: Asker,
    ) -> Plan:
        from ..models.http.retry import delays
        from ..tools.approval import Approver
        from ..tools.standing import STANDING

        outgoing.check(self.model.name, self.tools.specs, self.settings, redaction)
        if (check := getattr(self.model, "check_dialect", None)) is not None:
            check(native=self.dialect.native)
        start, policy = getattr(self.model, "start", None), self.policy()
        foreign = any(
            isinstance(note, events.State) and note.kind == "foreign_turns" for note in notes
        )
        approver = Approver(policy, ask, None if foreign else STANDING)
        return Plan(
            model=start() if start else self.model,
            dialect=self._thinking(self.dialect),
            fallback=self._thinking(plugins.load("dialects", FALLBACK)),
            tools=self.tools.specs,
            runner=self._runner(approver, log, redaction),
            limits=self.limits,
            redaction=redaction,
            retry_delay=delays,
            system=self.system,
            memory=self.memory,
            settings=self.settings,
            start=self._start(redaction, given),
            notes=tuple(notes),
            warnings=redaction.value(policy.remarks),
        )

    def _runner(
        self, approver: Approver, log: EventLog, redaction: Redaction, host: Host | None = None
    ) -> ToolRunner:
        from ..tools.runner import ToolRunner

        return ToolRunner(
            self.tools,
            approver=approver,
            host=host or self.host,
            folder=self.folder,
            trace_id=self.trace_id or log.run,
            redaction=redaction,
        )

    def _start(self, redaction: Redaction, given: Given) -> dict[str, Any]:
        """Return the fields of `run_start`: the values that decide the outcome, and their hash."""
        settings: dict[str, Any] = redaction.value(
            {
                "system": self.system,
                "sampling": self.settings,
                "approve": self.approve,
                "limits": msgspec.to_builtins(self.limits),
            }
        )
        settings |= {
            "inputs": given.inputs,
            "hash": inputs_hash(given.inputs),
            "source": redaction.value(self.choice.source),
        }
        settings |= {
            "asked": redaction.value(given.model),
            **({"turns": given.turns} if given.turns else {}),
        }
        seen = behind(self.tools, self.folder)
        settings |= {
            "place": redaction.value(place(self.folder)),
            **({"behind": seen} if seen else {}),
        }
        said = redaction.value(
            {"agent": self.name, "model": self.model.name, "dialect": self.dialect.name}
        )
        return {**said, "tools": self.tools.names, "settings": settings}

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
            tools=self.tools.names,
            settings=settings,
            history=history,
        )


def _images(attachments: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    if not attachments:
        return ()
    from ..models.images import image_block

    blocks = [image_block(a) for a in attachments]
    return tuple({"media_type": b.media_type, "data": b.data} for b in blocks)


def _without_text(pictures: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return pictures as they are recorded and sent; as inputs they count by what was given, so
    that old records are found.
    """
    from ..wire.media import base64_without_text

    return tuple({**picture, "data": base64_without_text(picture["data"])} for picture in pictures)
