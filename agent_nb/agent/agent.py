"""An agent: called with a prompt, it returns the stream of a run.

An agent may be called many times; each call assembles one run from the agent's values
(`configuration`), and `loop` carries it out.

Rule: change an agent by copying it, so that the copy stays a `rows.agent.Agent`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from anyio import CancelScope

from .. import events
from ..errors import UsageError
from ..events import Event, EventLog
from ..host import read_launch
from . import display
from .assembly import Basis, make_player, share_host
from .attachments import pictures_of, without_text
from .clean_json import clean_value
from .configuration import Configuration
from .context import Context
from .drift import Resume
from .loop import Loop
from .recorded_turns import RecordedTurns
from .registry import Questions
from .replay_check import ReplayStrictness
from .run import Run
from .run_spec import Plan
from .stream import RunRequest, Stream

if TYPE_CHECKING:
    from ..tools import Tool


class PromptAgent(Configuration):
    """An agent that is asked prompt by prompt; `rows.agent.Agent` documents its parameters."""

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

        `attachments`: pictures or one, for `images.image_block`. `history`: events of earlier
        runs of the conversation, oldest first. They are trusted: check foreign records first.
        `notes`: remarks on the conversation for the log. `resume`: where a replay drifted; the run
        continues from there. `context`: what to show the model of the notebook (`auto`, `vars`,
        `cells`, `none`; None: the notebook's default). `view`: how a notebook cell that awaits the
        run shows it (`auto`, `widgets`, `html`, `text`; None: not at all). `record`: let a notebook
        record the run, and replay it where nothing runs live (`offline`).

        Awaiting the stream returns the run; unless `check` is False, it raises RunFailed for a run
        that ended in an error. The call raises UsageError on an empty prompt without attachments,
        an attachment that cannot be sent, an unknown `context` and, unless offline, as `Basis.of`.
        """
        if not isinstance(prompt, str):  # such as a missing value of a frame
            raise UsageError(f"The prompt is of type {type(prompt).__name__}. Give a text.")
        runs = history if isinstance(history, Sequence) else (None,)
        if not all(isinstance(each, Sequence) and not isinstance(each, str) for each in runs):
            raise UsageError("history holds the events of each earlier run: history=[run.events].")
        prompt, *notes = clean_value((prompt, *notes))
        if not prompt.strip() and not attachments:
            raise UsageError("The prompt is empty. Write what the agent should do.")
        log = EventLog()
        redaction = self.redaction()
        text, pictures = redaction.value(prompt), pictures_of(attachments, redaction.value)
        user_event = events.User(content=text, attachments=without_text(pictures), origin="user")
        questions = Questions()
        inputs = self.make_redacted_inputs(redaction, text, pictures, history)
        run_context = self._find_context(context, prompt)
        ask = questions.combine_with(self.ask)

        @cache
        def plan() -> Plan:
            basis = Basis.of(self, redaction)
            return basis.plan(log, inputs, notes, ask=ask, context=run_context)

        # fail now, not when the run starts; offline, the model may be unknown
        if not read_launch().why_not_live:
            plan()
        request = RunRequest(
            user_event,
            inputs,
            self.tools,
            self.choice.is_script,
            partial(make_player, self, log=log, redaction=redaction),
        )

        def make_loop(scope: CancelScope) -> Loop:
            shared = share_host(plan(), display.entered_host())
            return Loop(shared, log, user_event, history, scope, resume=resume)

        return Stream(
            log,
            make_loop,
            questions,
            view=view,
            check=check,
            request=request if record else None,
            output=self.output,
            make_redaction=self.redaction,
        )

    def _find_context(self, context: Context | str | None, prompt: str) -> Context:
        """Return the context of a run: the caller's, else one gathered from the notebook."""
        if isinstance(context, Context):
            return context
        hosted = self.host is not None or display.find_host() is not None
        return display.gather_context(context, self.tools, prompt, hosted=hosted)

    def replay(
        self, tape: RecordedTurns, *, check: bool = True, wish: ReplayStrictness | None = None
    ) -> Stream:
        """Return the stream of a recorded run. With `tape.live` it ends early at a drift.

        `check`: as in a call of the agent. `wish`: how strictly a test compares (None: as in any
        replay). Raises UsageError for a faulty policy file.
        """
        log = EventLog(tape.run)
        redaction = self.redaction()
        make = make_player(self, tape, wish, log=log, redaction=redaction)
        return Stream(
            log,
            make,
            check=check,
            output=self.output,
            is_replay=True,
            make_redaction=self.redaction,
        )

    def run_sync(self, prompt: str, *, check: bool = True, **options: Any) -> Run:
        """Run to the end and return the run; for scripts.

        `check`: raise RunFailed for a run that ended in an error. Raises UsageError inside a
        running event loop, where `await agent(prompt)` works.
        """
        __tracebackhide__ = True
        run: Run = self._run_to_end(lambda: self(prompt, **options, check=False))
        return run.raise_for_status() if check else run

    @staticmethod
    def _run_to_end(
        begin: Callable[[], Awaitable[Any]], instead: str = "run = await agent(prompt)"
    ) -> Any:
        """Await what `begin` returns, such as a stream, in a new event loop; return the result.

        `instead`: what to write inside a running event loop, where this raises UsageError.
        """

        async def main() -> Any:
            return await begin()

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(main())
        raise UsageError(
            f"An event loop is running here (a notebook cell?): write `{instead}` instead."
        )

    def as_tool(self, name: str = "", description: str = "") -> Tool:
        """Return a tool that prompts this agent and returns its answer; see `subagent`.

        Raises UsageError without a name.
        """
        from .subagent import as_tool

        return as_tool(self, name, description)
