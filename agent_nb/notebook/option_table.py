"""The table of the options of `%%agent`: each with its names and argparse's keywords.

Why a table: the parser, completion and the message for an unknown option read it.

Rules
- An option is written in full, not abbreviated.
- The help texts are for users: `%%agent?` shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ..agent import Context, Limits
from ..rows import MapOptions, OnError
from ..tools import Compare

DEFAULT_CONVERSATION = "main"
NO_TOOLS = "none"  # as the only name of `-t`
VIEWS = ("auto", "widgets", "html", "text")
Thoughts = Literal["show", "collapse", "hide"]
MEMORIES = ("window", "summary")
COMPARES: tuple[Compare, ...] = ("exact", "full", "text", "none")
Expect = Literal["", "error", "limit"]
ON_ERRORS: tuple[OnError, ...] = ("keep", "raise")
EXPECTS: tuple[Expect, ...] = ("error", "limit")
RERUNS = ("auto", "live", "replay")
THOUGHTS: tuple[Thoughts, ...] = ("show", "collapse", "hide")
EFFORTS = "none|minimal|low|medium|high|xhigh, or a number of tokens"


def _flag_option(*names: str, help: str) -> tuple[tuple[str, ...], dict[str, Any]]:  # noqa: A002  (argparse's word)
    """Return the entry of an option without a value: None unless it is on the line."""
    return names, {"action": "store_true", "default": None, "help": help}


def _value_option(*names: str, **keywords: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the entry of an option with a value."""
    return names, keywords


def _parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object that an option holds.

    Raises ValueError or TypeError, which argparse turns into its own message.
    """
    value = msgspec.json.decode(text)
    if not isinstance(value, dict):
        raise TypeError(f"{text} is not a JSON object")
    return value


OPTIONS = (  # each: its names, and argparse's keywords
    _value_option(
        "-m",
        "--model",
        metavar="MODEL",
        help="provider/name, for example openai/gpt-5-mini or local/smollm2; a/x,b/y: the next one answers when one is away or overloaded",
    ),
    _value_option(
        "-t",
        "--tools",
        metavar="TOOLS",
        action="append",
        help="tools by name, separated by commas: built-in, installed, functions of the notebook, or mcp:SERVER; none: no tools (default: python, which asks before each call, and add_cell)",
    ),
    _value_option(
        "-d",
        "--dialect",
        metavar="DIALECT",
        help="how the model writes its turns: native, xml, section",
    ),
    _value_option(
        "-o",
        dest="output",
        metavar="VAR",
        help="the variable that gets the Run (_agent always does); with --map: the frame",
    ),
    _value_option(
        "--output",
        dest="kind",
        metavar="TYPE",
        help="the type of the answer, for run.output: a class of the notebook, or list[Row], int …",
    ),
    _value_option(
        "-c",
        "--conversation",
        metavar="NAME",
        help=f"the conversation to go on with (default: {DEFAULT_CONVERSATION})",
    ),
    _flag_option("--new", help="start the conversation anew with this cell"),
    _flag_option("--live", help="call the model, whatever was recorded"),
    _value_option(
        "--rerun",
        choices=RERUNS,
        help="live: call the model; replay: play the record or fail; auto (the default): play it if nothing has changed",
    ),
    _value_option(
        "--compare",
        choices=COMPARES,
        help="what of results that run again `test` compares: all of it (full, the default), also durations (exact), text, none",
    ),
    _value_option(
        "--expect",
        choices=EXPECTS,
        help="the run is to end so: the cell does not fail then, and fails if it ends otherwise",
    ),
    _value_option(
        "--approve",
        metavar="HOW",
        help="tools with effects: ask (the default), auto, deny, or a policy file",
    ),
    _flag_option("--no-record", help="keep this run out of the notebook file"),
    _flag_option(
        "--fix",
        help="ask about the cell that failed last: its code and its traceback are the question, the cell's text is a remark",
    ),
    _value_option("--view", choices=VIEWS, help="how the run is shown (default: auto)"),
    _value_option(
        "--thoughts", choices=THOUGHTS, help="how thoughts are shown (default: collapse)"
    ),
    _value_option("--system", metavar="TEXT", help="instructions for the model"),
    _value_option(
        "--context",
        choices=Context.MODES,
        help="what the model is given about the notebook: auto (the default): the variables without their values; vars: also first rows of tables; cells: also the cells above; none: nothing",
    ),
    _value_option(
        "--max-turns", type=int, metavar="N", help=f"limit: model turns (default: {Limits().turns})"
    ),
    _value_option(
        "--max-calls",
        type=int,
        metavar="N",
        help=f"limit: tool calls (default: {Limits().tool_calls})",
    ),
    _value_option(
        "--max-failures",
        type=int,
        metavar="N",
        help=f"limit: tool failures in a row (default: {Limits().failures})",
    ),
    _value_option(
        "--max-tokens",
        type=int,
        metavar="N",
        help=f"limit: tokens of the whole run (default: {Limits().tokens:,})",
    ),
    _value_option(
        "--budget",
        "--cost",
        dest="cost",
        type=float,
        metavar="USD",
        help="limit: cost of the whole run; needs a known price (default: none)",
    ),
    _value_option(
        "--time", type=float, metavar="S", help=f"limit: seconds (default: {Limits().seconds:g})"
    ),
    _value_option("--temperature", type=float, metavar="X", help="sampling temperature"),
    _value_option("--seed", type=int, metavar="N", help="sampling seed"),
    _value_option("--reasoning", metavar="EFFORT", help=EFFORTS),
    _value_option("--max-output", type=int, metavar="N", help="tokens of one answer of the model"),
    _value_option(
        "--stop", action="append", metavar="TEXT", help="a text at which the model stops"
    ),
    _value_option(
        "--extra",
        type=_parse_object,
        metavar="JSON",
        help="an object merged into the request as it is",
    ),
    _value_option(
        "--memory",
        choices=MEMORIES,
        help="a conversation too long for the model: leave the oldest turns out (the default), or summarise them",
    ),
    _value_option(
        "--thought-tags",
        metavar="NAMES",
        help="names of tags that hold thoughts wherever they stand outside code; think and thinking always do at the start of an answer",
    ),
    _value_option(
        "--attach",
        action="append",
        metavar="FILE",
        help="a picture, a text, or a table (CSV, TSV, Parquet, Excel), which becomes a frame named like the file, or NAME of NAME=FILE; also a variable that holds a picture or a figure; with --map pictures only, or a column of them",
    ),
    _value_option(
        "--map",
        metavar="DATA",
        help="ask the prompt for each row of a frame, dicts or texts: a variable, or an expression in quotes; {{ }} sees the columns first; _map is the map",
    ),
    _value_option(
        "--concurrency",
        type=int,
        metavar="N",
        help=f"with --map: rows asked at once (default: {MapOptions().concurrency})",
    ),
    _value_option("--rpm", type=int, metavar="N", help="with --map: requests per minute"),
    _value_option("--limit", type=int, metavar="N", help="with --map: only the first rows"),
    _value_option(
        "--on-error",
        choices=ON_ERRORS,
        help="with --map: keep an error in its row (the default), or raise the first one",
    ),
    _value_option(
        "--store",
        metavar="FILE",
        help="with --map: where rows that are answered are kept, such as a file beside the notebook",
    ),
    _value_option(
        "--from",
        dest="source",
        metavar="FILE|URL",
        help="show a run of another system instead; the cell's text is its prompt",
    ),
    _value_option(
        "--codec",
        metavar="CODEC",
        help="with --from: the format, if its first lines do not show it",
    ),
    _flag_option(
        "--follow",
        help="with --from: read on in a file that is being written, until the run has ended",
    ),
)


def add_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a magic function as IPython's `magic_arguments`; `%%agent?` shows them."""
    from IPython.core.magic_arguments import argument, magic_arguments

    for names, keywords in reversed(OPTIONS):
        function = argument(*names, **keywords)(function)
    decorated: Callable[..., Any] = magic_arguments("%agent")(function)
    decorated.parser.allow_abbrev = False  # type: ignore[attr-defined]
    return decorated
