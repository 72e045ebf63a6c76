"""The public `Agent`: a `PromptAgent` that also asks the rows of a table and scores the answers.

It stands above the room `agent`, because single prompts need no tables. Its methods import the
modules of maps and evaluations when they are called; `typing.get_type_hints` therefore reports Any.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

from ..agent import PromptAgent

if TYPE_CHECKING:
    from .eval.evaluation import Evaluation
    from .map.stream import MapStream
else:
    Evaluation = MapStream = Any


class Agent(PromptAgent):
    """A model with tools.

    `model`: a `Model`, a name such as `openai/gpt-5`, or None to choose by configuration; several
    (a list, or `a/x,b/y`): the next takes over when one is unreachable or overloaded. `tools`:
    functions, `Tool`s or names of built-ins. `approve`: `ask`, `auto`, `deny` or the path of a
    policy file. `limits`: any of `turns tool_calls failures tokens cost seconds`. `settings`:
    sampling values (`temperature seed max_tokens stop reasoning top_p extra_body`). `output`: the
    type of the answer (see `output_type`), for `run.output`.

    `folder`: where file tools may look. `secrets`: values by name that must not appear anywhere
    (default: those known when a run starts). `memory`: how to shorten a conversation that exceeds
    the model's context, `window` or `summary`. `thought_tags`: names of tags whose text is a
    thought anywhere outside code. `think` and `thinking` count only at the start of an answer.

    `late`: resolve the model on first use, so that a replay needs neither the model nor a key.
    `namespace`: where the names of functions, models and policies are looked up (policies: in
    `__main__` by default). `mentioned` returns names of further tools that a policy may mention.
    `model_source`: where the name of the model came from, for the record.
    """

    def map(
        self,
        data: Any,
        prompt: str,
        *,
        output: Any = None,
        concurrency: int = 10,
        rpm: int | None = None,
        on_error: Literal["keep", "raise"] = "keep",
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
        `client`: a Dask Client, whose workers ask the rows; they read API keys from their own
        environment. `attachments`: pictures for all rows, the name of a column of pictures, or a
        function of the row. `store`: the file that stores finished rows, so that the same map asks
        only the missing, failed and changed ones again (None: a file in the user's state folder;
        False: none). `view`, `record`: as in a call of the agent.

        The agent's limits of tokens (if set) and dollars hold over the whole map, the others for
        each row.

        Awaiting the stream returns the same kind of data: columns of the answers, then `_run
        _status _error _tokens _cost _seconds`. `async for` gives the rows as they finish. Raises
        RunFailed if the first rows, or all rows of a small map, fail; UsageError before the first
        request for data, a prompt, options or tools that cannot be used.
        """
        from .map.options import MapOptions
        from .map.stream import start_map

        options = MapOptions(concurrency=concurrency, rpm=rpm, on_error=on_error, limit=limit)
        return start_map(
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
        return self._run_to_end(lambda: self.map(data, prompt, **options), instead)

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

            evaluation = await agent.eval(df, "Classify {{ text }}", score="label")

        `score`: a function `(answer, row)` that gives a number or bool (see `eval.scoring`), the
        name of the column with the expected value, or an agent as judge, which gives 0 to 1 and a
        reason. `expected`: the column that the judge may read (by default `expected`, if the data
        have it). `failed`: the score of answers that failed or could not be scored; None leaves
        them out.

        `repeats`: how often each row is asked. `sample`: only so many rows, chosen at random by
        `seed`. `level`: the confidence level of the interval. `name`: names the evaluation in
        comparisons and plots. `options`: those of `map`. Raises UsageError before the first request
        for arguments that cannot be used.
        """
        from .eval.evaluate import EvaluationOptions, evaluate_prompt

        setup = EvaluationOptions(
            score=score,
            repeats=repeats,
            output=output,
            expected=expected,
            failed=failed,
            sample=sample,
            seed=seed,
            level=level,
            name=name,
        )
        return await evaluate_prompt(self, data, prompt, setup, **options)

    def eval_sync(self, data: Any, prompt: str, **options: Any) -> Evaluation:
        """Return an evaluation; for scripts. `options`: as in `eval`.

        Raises UsageError inside a running event loop, where `await agent.eval(…)` works.
        """
        __tracebackhide__ = True
        instead = "found = await agent.eval(data, prompt, score=…)"
        evaluation: Evaluation = self._run_to_end(
            lambda: self.eval(data, prompt, **options), instead
        )
        return evaluation
