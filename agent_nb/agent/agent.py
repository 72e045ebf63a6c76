"""An agent: called with a prompt, it returns the stream of a run.

Rules
- No concrete model, dialect, tool or codec is imported. The notebook passes in its host, asker and
  folder.
- An `Agent` holds no run state: runs of one agent may interleave.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from .. import events
from ..errors import UsageError
from ..events import Event
from ..events.log import EventLog
from ..models import offline
from . import display
from .assembly import make_basis, plan, player, share_host
from .attachments import pictures_of, without_text
from .clean_json import clean_value
from .configuration import Configuration
from .context import Context
from .drift import Resume
from .loop import Loop
from .registry import Questions
from .replay_check import Wish
from .run import Run
from .run_spec import Plan
from .stream import Asked, Replay, Stream, finished
from .tape import Tape

if TYPE_CHECKING:
    from ..tools.base import Tool
    from .eval.evaluation import Evaluation
    from .map.options import OnError
    from .map.stream import MapStream


class Agent(Configuration):
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
    thoughts anywhere outside code (think and thinking do at the start of an answer). `namespace`:
    where the names of functions, models and policies are looked up (policies: in `__main__` by
    default). `mentioned` returns names of further tools that a policy may mention. `model_source`:
    where the name of the model came from, for the record. `output`: the type of the answer (see
    `output_type`), for `run.output`.
    """

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
        prompt, *notes = clean_value((prompt, *notes))
        if not prompt.strip() and not attachments:
            raise UsageError("The prompt is empty. Write what the agent should do.")
        log = EventLog()
        redaction = self.redaction()
        said, pictures = redaction.value(prompt), pictures_of(attachments, redaction.value)
        user = events.User(content=said, attachments=without_text(pictures), origin="user")
        questions = Questions()
        given = self.given_of(redaction, said, pictures, history)
        beside = context if isinstance(context, Context) else self._beside(context, prompt)
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
            lambda scope: Loop(
                share_host(make(), display.entered_host()), log, user, history, scope, resume=resume
            ),
            questions,
            view=view,
            check=check,
            asked=asked if record else None,
            output=self.output,
        )

    def _beside(self, mode: str | None, prompt: str) -> Context:
        hosted = self.host is not None or display.host() is not None
        return display.context(mode, self.tools, prompt, hosted=hosted)

    def replay(self, tape: Tape, *, check: bool = True, wish: Wish | None = None) -> Replay:
        """Return the stream of a recorded run. With `tape.live` it ends early at a drift.

        `check`: as in a call of the agent. `wish`: how strictly a test compares. Raises UsageError
        for a faulty policy file.
        """
        log = EventLog(tape.run)
        redaction = self.redaction()
        make = player(self, tape, wish, log=log, redaction=redaction)
        return Replay(log, make, check=check, output=self.output)

    def run_sync(self, prompt: str, *, check: bool = True, **options: Any) -> Run:
        """Run to the end and return the run; for scripts.

        `check`: raise RunFailed for a run that ended in an error. Raises UsageError inside a
        running event loop, where `await agent(prompt)` works.
        """
        __tracebackhide__ = True
        run: Run = finished(lambda: self(prompt, **options, check=False))
        return run.raise_for_status() if check else run

    def map(
        self,
        data: Any,
        prompt: str,
        *,
        output: Any = None,
        concurrency: int = 10,
        rpm: int | None = None,
        on_error: OnError = "keep",
        limit: int | None = None,
        client: Any = None,
        attachments: Any = None,
        store: str | os.PathLike[str] | bool | None = None,
        view: str | None = "auto",
        record: bool = True,
    ) -> MapStream:
        """Return the stream of a map: `prompt` is asked for each row of `data`.

            frame = await agent.map(df, "Classify {{ text }}", output=Label)

        `data`: a pandas or polars frame, dicts, or strings (the column `text`). `{{ }}` sees the
        columns first, then the notebook; `row["any name"]` too. `output`: the type of the answers.
        `concurrency`: rows asked at once. `rpm`: requests per minute. `on_error`: `keep` the error
        in its row, or `raise` RunFailed for the first one. `limit`: only the first rows.
        `client`: a Dask Client or an executor, whose workers ask the rows with keys of their own.
        `attachments`: pictures for all rows, the name of a column of pictures, or a function of the
        row. `store`: the file in which finished rows are kept, so that the same map asks only the
        missing, failed and changed ones again (None: a file in the user's state folder; False:
        none). `view`, `record`: as in a call of the agent. The agent's limits of tokens (if set)
        and dollars hold over the whole map, the others for each row.

        Awaiting it returns the same kind of data: columns of the answers, then `_run _status _error
        _tokens _cost _seconds`. `async for` gives the rows as they finish. Raises UsageError
        for what cannot be asked, before the first request.
        """
        from .map.options import MapOptions
        from .map.stream import map_of

        options = MapOptions(concurrency=concurrency, rpm=rpm, on_error=on_error, limit=limit)
        return map_of(
            self,
            data,
            prompt,
            options,
            output=output,
            attachments=attachments,
            store=store,
            view=view,
            record=record,
            client=client,
        )

    def map_sync(self, data: Any, prompt: str, **options: Any) -> Any:
        """Run a map to its end and return its frame; for scripts. `options`: as in `map`.

        Raises UsageError inside a running event loop, where `await agent.map(…)` works.
        """
        __tracebackhide__ = True
        instead = "frame = await agent.map(data, prompt)"
        return finished(lambda: self.map(data, prompt, **options), instead)

    async def eval(
        self,
        data: Any,
        prompt: str,
        *,
        score: Any,
        repeats: int = 5,
        output: Any = None,
        expected: str | None = None,
        failed: float | None = None,
        sample: int | None = None,
        seed: int = 0,
        level: float = 0.95,
        name: str = "",
        **options: Any,
    ) -> Evaluation:
        """Ask `prompt` for each row of `data`, as `map` does, and score the answers.

            found = await agent.eval(df, "Classify {{ text }}", score="label")

        `score`: a function `(answer, row)` that gives a number or bool (see `eval.scoring`), the
        name of the column with the expected value, or an agent as judge, which gives 0 to 1 and a
        reason. `repeats`: how often each row is asked. `expected`: the column that the judge may
        read (by default `expected`, if there is one). `failed`: the score of answers that failed;
        None leaves them out. `sample`: only so many rows, chosen at random by `seed`. `level`: of
        the interval. `name`: of the evaluation, in comparisons and plots. `options`: those of
        `map`. Raises UsageError before the first request for what cannot be asked or scored.
        """
        from .eval.evaluate import evaluate

        return await evaluate(
            self,
            data,
            prompt,
            score=score,
            repeats=repeats,
            output=output,
            expected=expected,
            failed=failed,
            sample=sample,
            seed=seed,
            level=level,
            name=name,
            **options,
        )

    def eval_sync(self, data: Any, prompt: str, **options: Any) -> Evaluation:
        """Return an evaluation; for scripts. `options`: as in `eval`.

        Raises UsageError inside a running event loop, where `await agent.eval(…)` works.
        """
        __tracebackhide__ = True
        instead = "found = await agent.eval(data, prompt, score=…)"
        found: Evaluation = finished(lambda: self.eval(data, prompt, **options), instead)
        return found

    def as_tool(self, name: str = "", description: str = "") -> Tool:
        """Return a tool that prompts this agent and returns its answer; see `subagent`.

        Raises UsageError without a name.
        """
        from .subagent import as_tool

        return as_tool(self, name, description)
