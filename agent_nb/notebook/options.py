"""The options of one `%%agent` cell, read from its first line.

Why strict: an ignored option could change what a run costs and may do. So every mistake in the line
is a UsageError. Quotes group words; backslashes are plain characters (paths, regular expressions).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from ..agent import Mode
from ..errors import UsageError, did_you_mean
from ..models import collect_secrets
from ..rows import MapOptions
from ..tools import Compare
from ..wire import redact_text
from .option_table import DEFAULT_CONVERSATION, NO_TOOLS, OPTIONS, Expect, Thoughts

LATEST = "_agent"  # the variable of the latest run


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one `%%agent` cell; None or empty: neither its line nor `%config` sets it.

    `limits` and `settings` hold only values that are set, under the names of `Agent`.
    """

    model: str | None = None
    model_source: str = ""  # where `model` comes from, if not from the option
    tools: tuple[str, ...] = ()
    own_tools: bool = False  # the line itself chooses `tools`
    dialect: str | None = None
    output: str = LATEST
    kind: str = ""  # the type of the answer, as an expression
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
    context: Mode = "auto"
    fix: bool = False
    compare: Compare = "full"
    expect: Expect = ""
    map: str = ""  # the data whose rows are asked, as an expression
    mapping: MapOptions = MapOptions()  # how the rows are asked
    store: str = ""  # the file of the rows of a map

    @property
    def variable(self) -> str:
        """The variable that gets the run; with `--map` that of `-o` gets the frame."""
        return LATEST if self.map else self.output


# parser names of limits -> their names in Options.limits
LIMITS = {
    "max_turns": "turns", "max_calls": "tool_calls", "max_failures": "failures",
    "max_tokens": "tokens", "cost": "cost", "time": "seconds",
}  # fmt: skip
# parser names that are also names of fields of Options, with the same values
COPIED_FIELDS = (
    "model", "dialect", "conversation", "new", "live", "rerun", "view", "thoughts", "system",
    "memory", "source", "codec", "follow", "context", "kind", "fix", "compare", "expect", "map",
    "store",
)  # fmt: skip
# parser names that are fields of MapOptions
MAP_FIELDS = ("concurrency", "rpm", "limit", "on_error")
# parser names of options that need --map -> how they are written
WITH_MAP = {**{name: f"--{name.replace('_', '-')}" for name in MAP_FIELDS}, "store": "--store"}
# parser names of options that do not go with --map -> how they are written
WITHOUT_MAP = {"source": "--from", "fix": "--fix", "new": "--new", "conversation": "-c"}
# parser names of model settings -> their names in Options.settings
SETTINGS = {
    "temperature": "temperature", "seed": "seed", "reasoning": "reasoning",
    "max_output": "max_tokens", "stop": "stop", "extra": "extra_body",
}  # fmt: skip


def parse(parser: Any, line: str, defaults: Mapping[str, Any]) -> Options:
    """Return the options of a cell's first line; `defaults` are those of `%config AgentMagics`.

    `parser`: the argparse parser that `option_table.add_options` gives the magic. Raises
    UsageError.
    """
    from IPython.core.error import UsageError as ShellError

    try:
        parsed, unknown = parser.parse_known_args(split_words(line))
    except ShellError as fault:
        raise UsageError(
            f"{str(fault)[:1].upper()}{str(fault)[1:]}. %%agent? lists the options."
        ) from None
    if unknown:
        raise UsageError(_unknown_option(unknown[0]))
    # argparse takes a value `--`, as in `--stop=--`, for none at all, and gives []
    if any(v == [] or (isinstance(v, list) and [] in v) for v in vars(parsed).values()):
        raise UsageError("The value of an option cannot be --.")
    values = {k: v for k, v in defaults.items() if v not in (None, "", [], ())}
    # a map drops the context of %config; `_check_map` refuses `vars` and `cells` in the line itself
    if parsed.map:
        values.pop("context", None)
    values |= {k: v for k, v in vars(parsed).items() if v is not None}
    from_config = parsed.model is None and values.get("model")
    source = "from %config" if from_config else ""
    return _build_options(values, source, own_tools=parsed.tools is not None)


def _build_options(values: Mapping[str, Any], model_source: str, *, own_tools: bool) -> Options:
    """Return options from values under the parser's names (`model_source`, `own_tools`: `Options`).

    Raises UsageError for an invalid variable name, an unusable option of a map, and options that
    do not fit together.
    """
    output = values.get("output", LATEST)
    if not str(output).isidentifier():
        raise UsageError(f"-o takes the name of a variable, not {output!r}.")
    if not values.get("source") and (values.get("codec") or values.get("follow")):
        raise UsageError("--codec and --follow belong to --from FILE|URL.")
    _check_map(values)
    tools = split_names(values.get("tools", ()))
    if NO_TOOLS in tools and len(tools) > 1:
        raise UsageError(f"-t {NO_TOOLS} stands alone: it chooses no tools.")
    copied = {k: values[k] for k in COPIED_FIELDS if k in values}
    if "conversation" in copied:  # the name is stored in records and journals, and shown in lists
        name = copied["conversation"] or DEFAULT_CONVERSATION
        copied["conversation"] = redact_text(name, collect_secrets())
    return Options(
        **copied,
        model_source=model_source,
        output=output,
        tools=tools,
        own_tools=own_tools and bool(tools),
        approve=values.get("approve"),
        record=not values.get("no_record", False),
        limits={to: values[k] for k, to in LIMITS.items() if k in values},
        settings={to: _convert_number(values[k]) for k, to in SETTINGS.items() if k in values},
        attach=tuple(values.get("attach", ())),
        mapping=MapOptions(**{k: values[k] for k in MAP_FIELDS if k in values}).checked(),
        thought_tags=split_names(values.get("thought_tags", ())),
    )


def _check_map(values: Mapping[str, Any]) -> None:
    """Raise UsageError for options that need `--map`, or do not go with it."""
    map_only = [flag for name, flag in WITH_MAP.items() if name in values]
    if map_only and not values.get("map"):
        raise UsageError(f"{map_only[0]} belongs to --map DATA.")
    excluded = [flag for name, flag in WITHOUT_MAP.items() if values.get(name)]
    if values.get("context") in ("vars", "cells"):
        excluded.append("--context")
    if values.get("map") and excluded:
        raise UsageError(
            f"{excluded[0]} does not go with --map: each row is asked alone. Leave one of them out."
        )


def split_words(line: str) -> list[str]:
    """Split an option line into words. Raises UsageError on an unclosed quotation."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError(f"Unclosed quotation in: %%agent {line}") from None


def split_names(value: Any) -> tuple[str, ...]:
    """Return the names in a comma-separated text or a list of such texts, each once, in order."""
    texts = [value] if isinstance(value, str) else list(value)
    return tuple(
        dict.fromkeys(n.strip() for text in texts for n in str(text).split(",") if n.strip())
    )


def _convert_number(value: Any) -> Any:
    """Return a setting as an int if it is written so: `--reasoning 2000` is a number of tokens."""
    # few digits: `int` raises ValueError for thousands of them
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else value


def _unknown_option(word: str) -> str:
    """Return the message for a word of the line that is not an option."""
    if not word.startswith("-"):
        return f"{word!r} is not an option. The prompt goes below the first line; %%agent? lists the options."
    hint = did_you_mean(word.partition("=")[0], [name for flags, _ in OPTIONS for name in flags])
    return f"There is no option {word}.{hint} %%agent? lists the options."
