"""An agent: a model, tools and limits; called with a prompt it gives a stream of events and, at the end, a run.

Rules
- It imports no concrete model, dialect, tool or codec and nothing of view, notebook or server: names are resolved by `plugins` and
  `models.choose`, and the notebook hands in its host, its asker and its folder.
- An `Agent` holds no state of a run: runs of one agent may interleave.
- A run executes once, however many iterate over its stream; a late one gets the stored events first and then what comes live.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from . import events, plugins
from .batch import Redaction
from .errors import Cancelled, UsageError
from .events import Event
from .limits import Limits, limits_from
from .log import EventLog
from .loop import Loop, Plan
from .redact import Redactor, environment_secrets, redact_value
from .run import Run

if TYPE_CHECKING:
    from .models.base import Model
    from .tools.base import Asker, Host

FALLBACK = "xml"


class Agent:
    """A model with tools.

    `model`: a `Model`, a name such as `openai/gpt-5`, or None to choose by configuration. `tools`: functions, `Tool`s or names of
    built-ins. `approve`: `ask`, `auto`, `deny` or the path of a policy file. `limits`: any of `turns tool_calls failures tokens cost
    seconds`. `settings`: sampling values (`temperature seed max_tokens stop reasoning top_p extra_body`). `folder`: where file tools
    may look. `secrets`: values by name that must not appear anywhere (default: those of the environment).
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
    ) -> None:
        from .tools.toolset import resolve

        self.folder = os.fspath(folder)
        self.model, self.source = _model(model, namespace or {}, self.folder)
        self.tools = resolve(tools, namespace or {})
        self.system = system or ""
        self.dialect = plugins.load("dialects", dialect or self.model.dialect)
        self.approve = approve or "ask"
        self.limits = limits_from(limits)
        self.settings = dict(settings or {})
        self.name = name
        self.host = host
        self.ask = ask
        self.trace_id = trace_id
        self.secrets = dict(environment_secrets(os.environ) if secrets is None else secrets)

    def __call__(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
        notes: Sequence[str] = (),
    ) -> Stream:
        """Return the stream of a new run. Nothing happens before it is started, iterated or awaited.

        `history` are the events of earlier runs of the conversation, oldest first; `notes` are remarks on it for the log.
        Raises UsageError on an empty prompt.
        """
        if not prompt.strip() and not attachments:
            raise UsageError("The prompt is empty. Write what the agent should do.")
        log = EventLog()
        redaction = Redaction(partial(Redactor, self.secrets), partial(redact_value, secrets=self.secrets))
        user = events.User(content=redaction.value(prompt), attachments=_images(attachments), origin="user")
        return Stream(self._plan(log, redaction, user.content, notes), log, user, history)

    def run_sync(self, prompt: str, **options: Any) -> Run:
        """Run to the end and return the run; for scripts. Raises UsageError inside a running event loop: `await agent(prompt)` there."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._finish(prompt, options))
        raise UsageError("An event loop is running here (a notebook cell?): write `run = await agent(prompt)` instead of run_sync.")

    async def _finish(self, prompt: str, options: dict[str, Any]) -> Run:
        return await self(prompt, **options)

    def _plan(self, log: EventLog, redaction: Redaction, prompt: str, notes: Sequence[str]) -> Plan:
        from .models.retry import delays
        from .tools.approval import approver
        from .tools.runner import ToolRunner

        start = getattr(self.model, "start", None)
        runner = ToolRunner(
            self.tools, approver=approver(self.approve, self.ask, self.folder), host=self.host, folder=self.folder, trace_id=self.trace_id or log.run
        )
        thinking = plugins.load("dialects", "thinking").over
        return Plan(
            model=start() if start else self.model, dialect=thinking(self.dialect), fallback=thinking(plugins.load("dialects", FALLBACK)),
            tools=self.tools.specs, runner=runner, limits=self.limits, redaction=redaction, retry_delay=delays,
            system=self.system, settings=self.settings, start=self._start(redaction, prompt), notes=tuple(notes),
        )  # fmt: skip

    def _start(self, redaction: Redaction, prompt: str) -> dict[str, Any]:
        """Return the fields of `run_start`: the values that decide the outcome, and their hash."""
        settings: dict[str, Any] = redaction.value(
            {"system": self.system, "sampling": self.settings, "approve": self.approve, "limits": msgspec.to_builtins(self.limits)}
        )
        names = tuple(t.name for t in self.tools)
        decisive = [prompt, self.model.name, names, settings["system"], settings["sampling"]]
        settings["hash"] = hashlib.sha256(msgspec.json.encode(decisive, order="sorted")).hexdigest()[:16]
        settings["source"] = self.source
        return {"agent": self.name, "model": self.model.name, "dialect": self.dialect.name, "tools": names, "settings": settings}


class Stream:
    """One run: iterate it for events (deltas included), await it for the `Run`."""

    def __init__(self, plan: Plan, log: EventLog, user: events.User, history: Sequence[Sequence[Event]]) -> None:
        self.log = log
        self.run = Run(log)
        self._plan = plan
        self._user = user
        self._history = history
        self._task: asyncio.Task[None] | None = None
        self._loop: Loop | None = None
        self._stop: Cancelled | None = None

    def start(self) -> Stream:
        """Begin the run on the running event loop, once; return the stream."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drive(), name=f"agent run {self.log.run}")
        return self

    def cancel(self, reason: str = "user", detail: str = "") -> None:
        """Stop the run; call it on the event loop's thread. What there is is kept and the log ends with `interrupt` and `end`."""
        self._stop = self._stop or Cancelled(reason, detail)
        if self._loop is not None:
            self._loop.cancel(self._stop)

    async def aclose(self) -> None:
        """Stop the run and wait until its log has ended."""
        if self._task is None:
            return
        self.cancel()
        await asyncio.wait([self._task])

    async def _drive(self) -> None:
        scope = anyio.CancelScope()
        self._loop = Loop(self._plan, self.log, self._user, self._history, scope)
        if self._stop is not None:
            self._loop.cancel(self._stop)
        await self._loop.run()

    async def _wait(self) -> Run:
        self.start()
        assert self._task is not None
        await asyncio.wait([self._task])
        return self.run

    def __await__(self) -> Generator[Any, None, Run]:
        return self._wait().__await__()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event: those stored so far, then what comes live, deltas included, until `end`."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        detach = self.log.subscribe(queue.put_nowait)
        try:
            self.start()
            while True:
                event = await queue.get()
                yield event
                if event.type == "end" and not event.span:
                    return
        finally:
            detach()


def _model(model: Model | str | None, namespace: Mapping[str, Any], folder: str) -> tuple[Model, str]:
    """Return the model and where the choice came from; a name may also be that of a model object in the namespace."""
    from .models.choose import resolve

    if isinstance(model, str) and hasattr(namespace.get(model), "stream"):
        return namespace[model], f"the variable {model}"
    return resolve(model, folder=folder)


def _images(attachments: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    if not attachments:
        return ()
    from .models.images import image_block

    blocks = [image_block(a) for a in attachments]
    return tuple({"media_type": b.media_type, "data": b.data} for b in blocks)
