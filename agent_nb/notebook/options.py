"""The options of `%%agent`: one table for the parser and its help, and the values of one cell.

Rules
- Quotes group words and backslashes are plain characters (paths, regular expressions). An option is
  written in full.
- What an option does not say, `%config AgentMagics` does (`defaults`); what neither says is left to
  the agent.
- Everything wrong in the line is a UsageError that names the nearest right thing; nothing is
  ignored in silence.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ..agent.limits import Limits
from ..errors import UsageError, did_you_mean
from ..models.keys import secrets
from ..tools.base import Compare
from ..wire.redact import redact_text

DEFAULT_CONVERSATION = "main"
VIEWS = ("auto", "widgets", "html", "text")
Thoughts = Literal["show", "collapse", "hide"]
MEMORIES = ("window", "summary")
COMPARES: tuple[Compare, ...] = ("full", "text", "none")
Expect = Literal["", "error", "limit"]
EXPECTS: tuple[Expect, ...] = ("error", "limit")
RERUNS = ("auto", "live", "replay")
THOUGHTS: tuple[Thoughts, ...] = ("show", "collapse", "hide")
EFFORTS = "none|minimal|low|medium|high|xhigh, or a number of tokens"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one `%%agent` cell asks for; None or empty: not said.

    `limits` and `settings` hold only what was said, under the names of `Agent`.
    """

    model: str | None = None
    model_source: str = ""  # where `model` comes from, if not from the option
    tools: tuple[str, ...] = ()
    dialect: str | None = None
    output: str = "_agent"
    conversation: str = DEFAULT_CONVERSATION
    new: bool = False
    live: bool = False
    rerun: str = ""
    approve: str | None = None
    record: bool = True
    view: str = "auto"
    thoughts: Thoughts = "collapse"
    system: str | None = None
    memory: str = "window"
    thought_tags: tuple[str, ...] = ()
    attach: tuple[str, ...] = ()
    limits: dict[str, float] = {}
    settings: dict[str, Any] = {}
    source: str = ""  # a file or address that another system's run is read from
    codec: str = ""
    follow: bool = False
    compare: Compare = "full"
    expect: Expect = ""


def _flag(*names: str, help: str) -> tuple[tuple[str, ...], dict[str, Any]]:  # noqa: A002  (argparse's word)
    return names, {"action": "store_true", "default": None, "help": help}


def _value(*names: str, **keywords: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, keywords


def _object(text: str) -> dict[str, Any]:
    """Return the JSON object that an option holds. Raises ValueError, which argparse reports."""
    value = msgspec.json.decode(text)
    if not isinstance(value, dict):
        raise TypeError(f"{text} is not a JSON object")
    return value


OPTIONS = (
    _value(
        "-m",
        "--model",
        metavar="MODEL",
        help="provider/name, for example openai/gpt-5-mini or local/smollm2",
    ),
    _value(
        "-t",
        "--tools",
        metavar="TOOLS",
        action="append",
        help="tools by name, separated by commas: "
        "built-in, installed, or functions of the notebook",
    ),
    _value(
        "-d",
        "--dialect",
        metavar="DIALECT",
        help="how the model writes its turns: native, xml, section",
    ),
    _value(
        "-o", "--output", metavar="VAR", help="the variable that gets the Run (_agent always does)"
    ),
    _value(
        "-c",
        "--conversation",
        metavar="NAME",
        help=f"the conversation to go on with (default: {DEFAULT_CONVERSATION})",
    ),
    _flag("--new", help="start the conversation anew with this cell"),
    _flag("--live", help="call the model, whatever was recorded"),
    _value(
        "--rerun",
        choices=RERUNS,
        help="live: call the model; replay: play the record or fail; auto (the default): play it if nothing has changed",
    ),
    _value(
        "--compare",
        choices=COMPARES,
        help="what of results that run again `test` compares: all of it (full, the default), text, none",
    ),
    _value(
        "--expect",
        choices=EXPECTS,
        help="the run is to end so: the cell does not fail then, and fails if it ends otherwise",
    ),
    _value(
        "--approve",
        metavar="HOW",
        help="tools with effects: ask (the default), auto, deny, or a policy file",
    ),
    _flag("--no-record", help="keep this run out of the notebook file"),
    _value("--view", choices=VIEWS, help="how the run is shown (default: auto)"),
    _value("--thoughts", choices=THOUGHTS, help="how thoughts are shown (default: collapse)"),
    _value("--system", metavar="TEXT", help="instructions for the model"),
    _value(
        "--max-turns", type=int, metavar="N", help=f"limit: model turns (default: {Limits().turns})"
    ),
    _value(
        "--max-calls",
        type=int,
        metavar="N",
        help=f"limit: tool calls (default: {Limits().tool_calls})",
    ),
    _value(
        "--max-failures",
        type=int,
        metavar="N",
        help=f"limit: tool failures in a row (default: {Limits().failures})",
    ),
    _value(
        "--max-tokens",
        type=int,
        metavar="N",
        help=f"limit: tokens of the whole run (default: {Limits().tokens:,})",
    ),
    _value(
        "--budget",
        "--cost",
        dest="cost",
        type=float,
        metavar="USD",
        help="limit: cost of the whole run (default: none)",
    ),
    _value(
        "--time", type=float, metavar="S", help=f"limit: seconds (default: {Limits().seconds:g})"
    ),
    _value("--temperature", type=float, metavar="X", help="sampling temperature"),
    _value("--seed", type=int, metavar="N", help="sampling seed"),
    _value("--reasoning", metavar="EFFORT", help=EFFORTS),
    _value("--max-output", type=int, metavar="N", help="tokens of one answer of the model"),
    _value("--stop", action="append", metavar="TEXT", help="a text at which the model stops"),
    _value(
        "--extra", type=_object, metavar="JSON", help="an object merged into the request as it is"
    ),
    _value(
        "--memory",
        choices=MEMORIES,
        help="a conversation too long for the model: leave the oldest turns out (the default), or summarise them",
    ),
    _value(
        "--thought-tags",
        metavar="NAMES",
        help="further names of tags that hold thoughts, beside think and thinking",
    ),
    _value(
        "--attach",
        action="append",
        metavar="IMAGE",
        help="an image file, or a variable that holds an image or a figure",
    ),
    _value(
        "--from",
        dest="source",
        metavar="FILE|URL",
        help="show a run of another system instead; the cell's text is its prompt",
    ),
    _value(
        "--codec",
        metavar="CODEC",
        help="with --from: the format, if its first lines do not show it",
    ),
    _flag(
        "--follow",
        help="with --from: read on in a file that is being written, until the run has ended",
    ),
)

LIMITS = {
    "max_turns": "turns", "max_calls": "tool_calls", "max_failures": "failures",
    "max_tokens": "tokens", "cost": "cost", "time": "seconds",
}  # fmt: skip
SAME = (
    "model",
    "dialect",
    "conversation",
    "new",
    "live",
    "rerun",
    "view",
    "thoughts",
    "system",
    "memory",
    "source",
    "codec",
    "follow",
    "compare",
    "expect",
)
SETTINGS = {
    "temperature": "temperature", "seed": "seed", "reasoning": "reasoning",
    "max_output": "max_tokens", "stop": "stop", "extra": "extra_body",
}  # fmt: skip


def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a magic function the options as IPython's `magic_arguments`, so that `%%agent?` is their
    help.
    """
    from IPython.core.magic_arguments import argument, magic_arguments

    for names, keywords in reversed(OPTIONS):
        function = argument(*names, **keywords)(function)
    decorated: Callable[..., Any] = magic_arguments("%agent")(function)
    decorated.parser.allow_abbrev = False  # type: ignore[attr-defined]
    return decorated


def parse(parser: Any, line: str, defaults: Mapping[str, Any]) -> Options:
    """Return the options of `line`. `parser` is `decorate(f).parser`. Raises UsageError for what is
    wrong in it.
    """
    from IPython.core.error import UsageError as ShellError

    try:
        said, rest = parser.parse_known_args(words(line))
    except ShellError as fault:
        raise UsageError(
            f"{str(fault)[:1].upper()}{str(fault)[1:]}. %%agent? lists the options."
        ) from None
    if rest:
        raise UsageError(_unknown(rest[0]))
    given = {k: v for k, v in defaults.items() if v not in (None, "", [], ())}
    given |= {k: v for k, v in vars(said).items() if v is not None}
    return build(given, "from %config" if said.model is None and given.get("model") else "")


def build(given: Mapping[str, Any], model_source: str = "") -> Options:
    """Return options from plain values under the parser's names. Raises UsageError for a bad
    variable name.
    """
    output = given.get("output", "_agent")
    if not str(output).isidentifier():
        raise UsageError(f"-o takes the name of a variable, not {output!r}.")
    if not given.get("source") and (given.get("codec") or given.get("follow")):
        raise UsageError("--codec and --follow belong to --from FILE|URL.")
    values = {k: given[k] for k in SAME if k in given}
    if "conversation" in values:  # the name stands in records, journals and lists
        values["conversation"] = redact_text(values["conversation"], secrets())
    return Options(
        **values,
        model_source=model_source,
        output=output,
        tools=names(given.get("tools", ())),
        approve=given.get("approve"),
        record=not given.get("no_record", False),
        limits={to: given[k] for k, to in LIMITS.items() if k in given},
        settings={to: _setting(given[k]) for k, to in SETTINGS.items() if k in given},
        attach=tuple(given.get("attach", ())),
        thought_tags=names(given.get("thought_tags", ())),
    )


def words(line: str) -> list[str]:
    """Split an option line into words. Raises UsageError on a quotation that does not end."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(f"A quotation does not end in: %%agent {line}") from None


def names(given: Any) -> tuple[str, ...]:
    """Return tool names from a text with commas or a list of such texts, each once, in order."""
    texts = [given] if isinstance(given, str) else list(given)
    return tuple(
        dict.fromkeys(n.strip() for text in texts for n in str(text).split(",") if n.strip())
    )


def _setting(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value


def _unknown(word: str) -> str:
    if not word.startswith("-"):
        return f"{word!r} is not an option. The prompt goes below the first line; %%agent? lists the options."
    known = [name for flags, _ in OPTIONS for name in flags]
    hint = did_you_mean(word.partition("=")[0], known)
    return f"There is no option {word}.{hint} %%agent? lists the options."
