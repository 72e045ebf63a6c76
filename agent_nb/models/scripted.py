"""`scripted/FILE` and `Scripted([...])`: a model that plays a script, for tests, documents and CI.

It works without a key or a network, and always answers the same. A script is a list of turns, one
per request. A turn is a text, or an object with these keys:

    text: "…"             what the model writes, in the wire text of the dialect in use
    chunk: 4              size of the pieces of `text` in characters (default: one piece)
    chunks: ["<thi", …]   the text in pieces of your own, instead of `text` and `chunk`
    thought: "…"          reasoning before the text (text or list of pieces; also `reasoning`)
    calls: [{name, args, id}]   native tool calls after the text; `args` is an object, or text as a
                          model writes it
    delay: 0.05           seconds before each piece
    usage: {input: 12, output: 30}   also cached, cache_written, reasoning, cost
    finish: "stop"        the finish reason
    cut: true             the stream breaks off after the pieces
    error: {status: 429, message: "…", retry_after: 2}   the request fails instead

A file (YAML or JSON) is such a list, or an object with `turns` and optionally `delay`, `dialect`
and `cases`: a list of `{when: TEXT, turns: […]}`, for the runs whose prompt holds that text. The
first case that fits plays; without one, the `turns` of the script.

Rule: a failed request consumes its turn; a retry gets the next one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..errors import ModelError, UsageError
from .chat.calls import make_call
from .http.retry import is_retryable_status
from .messages import Request
from .offline import SCRIPTS
from .parts import Call, CallDelta, Finish, Head, Part, Text, Thought, Usage
from .script_file import read_script
from .script_turn import Case, ScriptedCall, ScriptedError, Turn, read_turn
from .tariff import Tariff


class Scripted:
    """A model that plays `turns` (see the module); `delay` is the default seconds per piece.

    A single text is a script of one turn. Raises UsageError if `turns` cannot be read as turns.
    """

    grammar = False
    shots = False
    context = 0
    takes_tools = True
    tariff = Tariff(reports=True)  # the script says what an answer costs

    def __init__(
        self,
        turns: Sequence[Any],
        name: str = "scripted",
        *,
        delay: float = 0.0,
        dialect: str = "xml",
        cases: Sequence[Case] = (),
    ) -> None:
        if isinstance(turns, str):
            turns = [turns]
        if isinstance(turns, bytes | dict) or not isinstance(turns, Iterable):
            raise UsageError(
                f'A script is a list of turns: Scripted(["Yes."]), not a {type(turns).__name__}.'
            )
        self.name = name
        self.dialect = dialect
        self.delay = read_turn({"delay": delay}, name).delay or 0.0
        self.turns = tuple(read_turn(turn, f"{name}: turn {n}") for n, turn in enumerate(turns, 1))
        self.cases = tuple(cases)
        self._playing: tuple[Turn, ...] | None = None  # chosen by the run's first request
        self._next = 0

    @property
    def identity(self) -> str:
        """The name with a digest of the script: a changed script is another model."""
        content = (self.turns, self.cases) if self.cases else self.turns
        return f"{self.name}#{hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:16]}"

    def check_dialect(self, *, native: bool) -> None:
        """Raise UsageError for native calls in a text dialect, which would ignore them."""
        lists = [
            (self.name, self.turns),
            *((f"case {n} of {self.name}", case.turns) for n, case in enumerate(self.cases, 1)),
        ]
        with_calls = (
            f"{n} of {where}"
            for where, turns in lists
            for n, turn in enumerate(turns, 1)
            if turn.calls
        )
        if not native and (first := next(with_calls, "")):
            raise UsageError(
                f'Turn {first} has `calls:`, which only the dialect native has. Ask for it: Scripted(…, dialect="native"), '
                "-d native in a cell, or serve --dialect native; or write the call as text of the dialect."
            )

    def start(self) -> Scripted:
        """Return the same script from its first turn, for one run."""
        return Scripted(
            self.turns, self.name, delay=self.delay, dialect=self.dialect, cases=self.cases
        )

    async def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Play the next turn.

        Raises ModelError for a scripted error or cut, and if no turn is left.
        """
        turn = self._take(request)
        if turn.error:
            raise _make_error(turn.error)
        delay = self.delay if turn.delay is None else turn.delay
        # the usage goes with the first piece: a text dialect may stop reading before the last one
        head: list[Part] = [Head(status=200, model=self.name)]
        if turn.usage:
            usage = msgspec.structs.asdict(turn.usage)
            head.append(Usage(raw=msgspec.to_builtins(turn.usage), **usage))
        has_begun = False
        for batch in _make_batches(turn):
            if delay:
                await anyio.sleep(delay)
            yield batch if has_begun else [*head, *batch]
            has_begun = True
        if turn.cut:
            where = "in the middle of the answer" if has_begun else "before the answer began"
            raise ModelError(f"The stream broke off {where}.", retryable=not has_begun, code="cut")

    async def aclose(self) -> None:
        """Do nothing: a script has no connection."""

    def _take(self, request: Request) -> Turn:
        """Return the next turn."""
        if self._playing is None:
            prompt = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
            fitting = (case.turns for case in self.cases if case.when in prompt)
            self._playing = next(fitting, self.turns)
        index, self._next = self._next, self._next + 1
        if index >= len(self._playing):
            count = len(self._playing)
            raise ModelError(
                f"The script {self.name} has {count} turn{'' if count == 1 else 's'}{' for this prompt' if self.cases else ''}, "
                f"and this is request {index + 1}. Add a turn.",
                code="script",
            )
        return self._playing[index]


def _make_batches(turn: Turn) -> list[list[Part]]:
    """Return the parts of `turn`: a batch for each piece, then one with the calls and the Finish.

    A turn that is cut lacks the last batch.
    """
    thought = turn.thought or turn.reasoning
    pieces = [thought] if isinstance(thought, str) else thought
    batches: list[list[Part]] = [[Thought(piece)] for piece in pieces if piece]
    batches += [[Text(piece)] for piece in (*turn.chunks, *_split(turn.text, turn.chunk)) if piece]
    calls = [_read_call(call, index) for index, call in enumerate(turn.calls)]
    for call in calls:
        for piece in _split(call.raw_args, turn.chunk) or [""]:
            delta = CallDelta(piece, index=call.index, call_id=call.call_id, name=call.name)
            batches.append([delta])
    if turn.cut:
        return batches
    return [*batches, [*calls, Finish(turn.finish or ("tool_calls" if calls else "stop"))]]


def _split(text: str, size: int) -> list[str]:
    """Cut `text` into pieces of `size` characters (0: one piece)."""
    step = size if size > 0 else max(1, len(text))
    return [text[i : i + step] for i in range(0, len(text), step)]


def _read_call(call: ScriptedCall, index: int) -> Call:
    """Return the call as a provider's decoder would."""
    raw = call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)
    return make_call(call.name, raw, call_id=call.id, index=index)


def _make_error(error: ScriptedError) -> ModelError:
    return ModelError(
        error.message,
        status=error.status,
        retryable=is_retryable_status(error.status),
        retry_after=error.retry_after,
        code=error.code,
    )


SCRIPTS.append(Scripted)  # the one class that may run where live runs are forbidden (`offline`)


def provider(name: str, *, folder: str | Path | None = None, **_: Any) -> Scripted:
    """Return the model of the script file `name`, in the current folder or in `folder`.

    Raises UsageError if the file does not exist or is not a script.
    """
    script = read_script(name, folder)
    return Scripted(
        script.turns,
        f"scripted/{name}",
        delay=script.delay,
        dialect=script.dialect,
        cases=script.cases,
    )
