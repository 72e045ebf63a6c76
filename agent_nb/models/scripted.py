"""`scripted/FILE` and `Scripted([...])`: a model that plays a script, for tests, documents and CI.

Why: demonstration notebooks, and every test of the loop, need a model without a key, a network or
chance.

A script is a list of turns, one per request. A turn is a text, or an object with these keys:

    text: "…"             what the model writes, in the wire text of the dialect in use
    chunk: 4              size of the pieces of `text` in characters (default: one piece)
    chunks: ["<thi", …]   or the pieces themselves
    thought: "…"          reasoning before the text (text or list of pieces; also `reasoning`)
    calls: [{name, args, id}]   native tool calls after the text; `args` is an object, or text as a
                          model writes it
    delay: 0.05           seconds before each piece
    usage: {input: 12, output: 30}   also cached, cache_written, reasoning, cost
    finish: "stop"        the finish reason
    cut: true             the stream breaks off after the pieces
    error: {status: 429, message: "…", retry_after: 2}   the request fails instead

A file (YAML or JSON) is such a list, or an object with `turns` and optionally `delay` and
`dialect`.

Rules
- The k-th request gets the k-th turn. `start()` returns the same script from its first turn: the
  loop calls it once per run, so every run (a rerun, a sub-agent, two at once) begins at the
  first turn.
- A failed request consumes its turn; a retry gets the next one.
- Running out of turns is a ModelError with code `script`.
- A wrong script is a UsageError that names the file, the turn and, if possible, the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..errors import ModelError, UsageError
from .chat.calls import call_part
from .http.retry import retryable_status
from .messages import Request
from .parts import Call, CallDelta, Finish, Head, Part, Text, Thought, Usage
from .prices import Tariff

ENDINGS = ("", ".yaml", ".yml", ".json")


class ScriptedCall(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A native tool call of a script."""

    name: str
    args: dict[str, Any] | str = {}
    id: str = ""


class ScriptedError(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """How a scripted request fails; `retry_after` in seconds."""

    status: int = 500
    message: str = "the script says so"
    retry_after: float | None = None
    code: str = "provider"


class ScriptedUsage(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Tokens of a scripted turn."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cost: float | None = None


class Turn(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One turn of a script; see the module's docstring."""

    text: str = ""
    chunk: int = 0
    chunks: tuple[str, ...] = ()
    thought: str | tuple[str, ...] = ()
    reasoning: str | tuple[str, ...] = ()
    calls: tuple[ScriptedCall, ...] = ()
    delay: float | None = None
    usage: ScriptedUsage | None = None
    finish: str = ""
    cut: bool = False
    error: ScriptedError | None = None


class Scripted:
    """A model that plays `turns` (see the module); `delay` is the default seconds per piece.

    Raises UsageError for an invalid turn.
    """

    grammar = False
    shots = False
    context = 0
    tariff = Tariff(reports=True)  # the script says what an answer costs

    def __init__(
        self,
        turns: Sequence[Any],
        name: str = "scripted",
        *,
        delay: float = 0.0,
        dialect: str = "xml",
    ) -> None:
        self.name = name
        self.dialect = dialect
        self.delay = delay
        self.turns = tuple(_turn(turn, f"{name}: turn {n}") for n, turn in enumerate(turns, 1))
        self._next = 0

    @property
    def identity(self) -> str:
        """The name with a digest of the script: a changed script is another model."""
        return f"{self.name}#{hashlib.sha256(msgspec.json.encode(self.turns)).hexdigest()[:16]}"

    def check_dialect(self, *, native: bool) -> None:
        """Raise UsageError for native calls in a text dialect, which would ignore them."""
        number = next((n for n, turn in enumerate(self.turns, 1) if turn.calls), 0)
        if number and not native:
            raise UsageError(
                f'Turn {number} of {self.name} has `calls:`, which only the dialect native has. Ask for it: Scripted(…, dialect="native"), '
                "or -d native; or write the call as text of the dialect."
            )

    def start(self) -> Scripted:
        """Return the same script from its first turn, for one run."""
        return Scripted(self.turns, self.name, delay=self.delay, dialect=self.dialect)

    async def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Play the next turn.

        Raises ModelError for a scripted error or cut, and if no turn is left.
        """
        turn = self._take()
        if turn.error:
            raise _failure(turn.error)
        delay = self.delay if turn.delay is None else turn.delay
        first = True
        for batch in _batches(turn):
            if delay:
                await anyio.sleep(delay)
            yield ([Head(status=200, model=self.name), *_usage(turn), *batch] if first else batch)
            first = False
        if not turn.cut:
            return
        where = "before the answer began" if first else "in the middle of the answer"
        raise ModelError(f"The stream broke off {where}.", retryable=first, code="cut")

    async def aclose(self) -> None:
        """Do nothing: a script has no connection."""

    def _take(self) -> Turn:
        """Return the next turn."""
        index, self._next = self._next, self._next + 1
        if index >= len(self.turns):
            raise ModelError(
                f"The script {self.name} has {len(self.turns)} turn{'' if len(self.turns) == 1 else 's'}, "
                f"and this is request {index + 1}. Add a turn.",
                code="script",
            )
        return self.turns[index]


def _batches(turn: Turn) -> list[list[Part]]:
    """Return the parts of `turn`, one list for each piece."""
    thought = turn.thought or turn.reasoning
    pieces = [thought] if isinstance(thought, str) else thought
    batches: list[list[Part]] = [[Thought(piece)] for piece in pieces if piece]
    batches += [[Text(piece)] for piece in (*turn.chunks, *_split(turn.text, turn.chunk)) if piece]
    calls = [_call(call, index) for index, call in enumerate(turn.calls)]
    for call in calls:
        for piece in _split(call.raw_args, turn.chunk) or [""]:
            batches.append(
                [CallDelta(piece, index=call.index, call_id=call.call_id, name=call.name)]
            )
    if turn.cut:
        return batches
    return [*batches, [*calls, Finish(turn.finish or ("tool_calls" if calls else "stop"))]]


def _usage(turn: Turn) -> list[Part]:
    """Return the usage, sent with the first piece: a text dialect may not read to the end."""
    return (
        [Usage(raw=msgspec.to_builtins(turn.usage), **msgspec.structs.asdict(turn.usage))]
        if turn.usage
        else []
    )


def _split(text: str, size: int) -> list[str]:
    """Cut `text` into pieces of `size` characters (0: one piece)."""
    step = size if size > 0 else max(1, len(text))
    return [text[i : i + step] for i in range(0, len(text), step)]


def _call(call: ScriptedCall, index: int) -> Call:
    """Return the call as a provider's decoder would."""
    raw = call.args if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False)
    return call_part(call.name, raw, call_id=call.id, index=index)


def _failure(error: ScriptedError) -> ModelError:
    return ModelError(
        error.message,
        status=error.status,
        retryable=retryable_status(error.status),
        retry_after=error.retry_after,
        code=error.code,
    )


def _turn(value: Any, where: str) -> Turn:
    """Read one turn. Raises UsageError that begins with `where`."""
    if isinstance(value, Turn):
        return value
    try:
        return Turn(text=value) if isinstance(value, str) else msgspec.convert(value, Turn)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{where}: {error}. Keys of a turn: {', '.join(Turn.__struct_fields__)}."
        ) from None


def provider(name: str, *, folder: str | Path | None = None, **_: Any) -> Scripted:
    """Return the model of the script file `name`, in the current folder or in `folder`.

    Raises UsageError if the file does not exist or is not a script.
    """
    path = _find(name, [Path(), *([Path(folder)] if folder else [])])
    script, lines = _read(path)
    if isinstance(script, list):
        script = {"turns": script}
    if not isinstance(script, dict) or not isinstance(script.get("turns"), list):
        raise UsageError(f"{path}: a script is a list of turns, or an object with a list `turns`.")
    unknown = script.keys() - {"turns", "delay", "dialect"}
    if unknown:
        raise UsageError(
            f"{path}: unknown key {sorted(map(str, unknown))[0]!r}. A script has `turns`, `delay` and `dialect`."
        )
    turns = [
        _turn(t, f"{path}: turn {n}{lines.get(n, '')}") for n, t in enumerate(script["turns"], 1)
    ]
    delay, dialect = script.get("delay", 0.0), script.get("dialect", "xml")
    if not isinstance(delay, int | float) or not isinstance(dialect, str):
        raise UsageError(f"{path}: `delay` is a number of seconds and `dialect` a name.")
    return Scripted(turns, f"scripted/{name}", delay=float(delay), dialect=dialect)


def _find(name: str, folders: Sequence[Path]) -> Path:
    tried = [
        Path(str(folder / Path(name).expanduser()) + ending)
        for folder in folders
        for ending in ENDINGS
    ]
    for path in tried:
        if path.is_file():
            return path
    places = " or ".join(dict.fromkeys(str(folder.resolve().name or folder) for folder in folders))
    raise UsageError(
        f"There is no script {name!r} in {places}. A script is a YAML or JSON file with a list `turns`."
    )


def _read(path: Path) -> tuple[Any, dict[int, str]]:
    """Return the content of a script file and, for YAML, the line of each turn as text."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as text: {error}.") from None
    if path.suffix == ".json":
        try:
            return json.loads(text), {}
        except json.JSONDecodeError as error:
            raise UsageError(
                f"{path}, line {error.lineno}, column {error.colno}: {error.msg}."
            ) from None
    return _yaml(path, text)


def _yaml(path: Path, text: str) -> tuple[Any, dict[int, str]]:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        script = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{path}{where}: {getattr(error, 'problem', None) or error}.") from None
    if isinstance(root, yaml.MappingNode):
        root = next((value for key, value in root.value if key.value == "turns"), None)
    items = root.value if isinstance(root, yaml.SequenceNode) else []
    return script, {n: f" (line {item.start_mark.line + 1})" for n, item in enumerate(items, 1)}
