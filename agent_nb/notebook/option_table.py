"""The table of the options of `%%agent`: each with its names and argparse's keywords.

Why a table: the parser, completion and the message for an unknown option read it, and `%%agent?`
shows its help texts to users. An option is written in full, not abbreviated.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec

from ..agent import Context, Limits
from ..rows import MapOptions, OnError
from ..tools import Compare

DEFAULT_CONVERSATION = "main"
NO_TOOLS = "none"  # as the only name of `-t`

Thoughts = Literal["show", "collapse", "hide"]
Expect = Literal["", "error", "limit"]
# the values of options that take one of a few
VIEWS = ("auto", "widgets", "html", "text")
THOUGHTS: tuple[Thoughts, ...] = ("show", "collapse", "hide")
RERUNS = ("auto", "live", "replay")
COMPARES: tuple[Compare, ...] = ("exact", "full", "text", "none")
EXPECTS: tuple[Expect, ...] = ("error", "limit")
MEMORIES = ("window", "summary")
ON_ERRORS: tuple[OnError, ...] = ("keep", "raise")
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
EFFORT_HELP = f"{'|'.join(EFFORTS)}, or a number of tokens"

Entry = tuple[Sequence[str], dict[str, Any]]  # the names of an option, and argparse's keywords


def _option(usage: str, text: str, **keywords: Any) -> Entry:
    """Return an option from its usage, `-m --model MODEL` or only its names, and its help."""
    *names, last = usage.split()
    if last.startswith("-"):
        return [*names, last], {"help": text, **keywords}
    return names, {"help": text, "metavar": last, **keywords}


def _flag(name: str, text: str) -> Entry:
    """Return an option without a value, which is None unless it is on the line."""
    return _option(name, text, action="store_true", default=None)


def _parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object that an option holds. Raises ArgumentTypeError."""
    with suppress(ValueError, RecursionError):
        if isinstance(value := msgspec.json.decode(text), dict):
            return value
    raise ArgumentTypeError(f"{text[:60]!r} is not a JSON object, or is nested too deeply")


OPTIONS: tuple[Entry, ...] = (
    _option(
        "-m --model MODEL",
        "provider/name, for example openai/gpt-5-mini or local/smollm2; a/x,b/y: the next one answers when one is away or overloaded",
    ),
    _option(
        "-t --tools TOOLS",
        "tools by name, separated by commas: built-in, installed, functions of the notebook, or mcp:SERVER; none: no tools (default: python, which asks before each call, and add_cell)",
        action="append",
    ),
    _option("-d --dialect DIALECT", "how the model writes its turns: native, xml, section"),
    _option(
        "-o VAR",
        "the variable that gets the Run (_agent always does); with --map: the frame",
        dest="output",
    ),
    _option(
        "--output TYPE",
        "the type of the answer, for run.output: a class of the notebook, or list[Row], int …",
        dest="kind",
    ),
    _option(
        "-c --conversation NAME",
        f"the conversation to go on with (default: {DEFAULT_CONVERSATION})",
    ),
    _flag("--new", "start the conversation anew with this cell"),
    _flag("--live", "call the model, whatever was recorded"),
    _option(
        "--rerun",
        "live: call the model; replay: play the record or fail; auto (the default): play it if nothing has changed",
        choices=RERUNS,
    ),
    _option(
        "--compare",
        "what of results that run again `test` compares: all of it (full, the default), also durations (exact), text, none",
        choices=COMPARES,
    ),
    _option(
        "--expect",
        "the run is to end so: the cell does not fail then, and fails if it ends otherwise",
        choices=EXPECTS,
    ),
    _option("--approve HOW", "tools with effects: ask (the default), auto, deny, or a policy file"),
    _flag("--no-record", "keep this run out of the notebook file"),
    _flag(
        "--fix",
        "ask about the cell that failed last: its code and its traceback are the question, the cell's text is a remark",
    ),
    _option("--view", "how the run is shown (default: auto)", choices=VIEWS),
    _option("--thoughts", "how thoughts are shown (default: collapse)", choices=THOUGHTS),
    _option("--system TEXT", "instructions for the model"),
    _option(
        "--context",
        "what the model is given about the notebook: auto (the default): the variables without their values; vars: also first rows of tables; cells: also the cells above; none: nothing",
        choices=Context.MODES,
    ),
    _option("--max-turns N", f"limit: model turns (default: {Limits().turns})", type=int),
    _option("--max-calls N", f"limit: tool calls (default: {Limits().tool_calls})", type=int),
    _option(
        "--max-failures N",
        f"limit: tool failures in a row (default: {Limits().failures})",
        type=int,
    ),
    _option(
        "--max-tokens N", f"limit: tokens of the whole run (default: {Limits().tokens:,})", type=int
    ),
    _option(
        "--budget --cost USD",
        "limit: cost of the whole run; needs a known price (default: none)",
        dest="cost",
        type=float,
    ),
    _option("--time S", f"limit: seconds (default: {Limits().seconds:g})", type=float),
    _option("--temperature X", "sampling temperature", type=float),
    _option("--seed N", "sampling seed", type=int),
    _option("--reasoning EFFORT", EFFORT_HELP),
    _option("--max-output N", "tokens of one answer of the model", type=int),
    _option("--stop TEXT", "a text at which the model stops", action="append"),
    _option("--extra JSON", "an object merged into the request as it is", type=_parse_object),
    _option(
        "--memory",
        "a conversation too long for the model: leave the oldest turns out (the default), or summarise them",
        choices=MEMORIES,
    ),
    _option(
        "--thought-tags NAMES",
        "names of tags that hold thoughts wherever they stand outside code; think and thinking always do at the start of an answer",
    ),
    _option(
        "--attach FILE",
        "a picture, a text, or a table (CSV, TSV, Parquet, Excel), which becomes a frame named like the file, or NAME of NAME=FILE; also a variable that holds a picture or a figure; with --map pictures only, or a column of them",
        action="append",
    ),
    _option(
        "--map DATA",
        "ask the prompt for each row of a frame, dicts or texts: a variable, or an expression in quotes; {{ }} sees the columns first; _map is the map",
    ),
    _option(
        "--concurrency N",
        f"with --map: rows asked at once (default: {MapOptions().concurrency})",
        type=int,
    ),
    _option("--rpm N", "with --map: requests per minute", type=int),
    _option("--limit N", "with --map: only the first rows", type=int),
    _option(
        "--on-error",
        "with --map: keep an error in its row (the default), or raise the first one",
        choices=ON_ERRORS,
    ),
    _option(
        "--store FILE",
        "with --map: where rows that are answered are kept, such as a file beside the notebook",
    ),
    _option(
        "--from FILE|URL",
        "show a run of another system instead; the cell's text is its prompt",
        dest="source",
    ),
    _option("--codec CODEC", "with --from: the format, if its first lines do not show it"),
    _flag(
        "--follow", "with --from: read on in a file that is being written, until the run has ended"
    ),
)


def add_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a magic function as IPython's `magic_arguments`; `%%agent?` shows them."""
    from IPython.core.magic_arguments import argument, magic_arguments

    # IPython reads the decorators from the last one: reversed, its help keeps this order
    for names, keywords in reversed(OPTIONS):
        function = argument(*names, **keywords)(function)
    decorated: Callable[..., Any] = magic_arguments("%agent")(function)
    decorated.parser.allow_abbrev = False  # type: ignore[attr-defined]
    return decorated
