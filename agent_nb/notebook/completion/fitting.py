"""From what is typed to the names that fit: tables of options and commands, and what they take.

Rule: one entry completes an option or a command; options with choices need none.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from .. import option_table
from . import names
from .line import Typed, parse_typed
from .names import Source, files_ending, fixed_words

if TYPE_CHECKING:
    from ..session import Session


class Words(msgspec.Struct, frozen=True):
    """Where the words come from, and what they are called beside the list."""

    kind: str
    source: Source


_FILE = Words("file", files_ending())
_RUN = Words("run", names.run_ids)
# by the option's destination; `choices` of the option table need no entry
VALUES: dict[str, Words] = {
    "model": Words("model", names.model_names),
    "tools": Words("tool", names.tool_names),
    "dialect": Words("dialect", names.dialect_names),
    "output": Words("variable", names.variable_names),
    "kind": Words("type", names.type_names),
    "conversation": Words("conversation", names.conversation_names),
    "approve": Words(
        "approval", lambda s, b: ["ask", "auto", "deny", *files_ending(".toml", ".json")(s, b)]
    ),
    "attach": Words("image", names.image_names),
    "source": _FILE,
    "map": Words("data", names.table_names),
    "store": _FILE,
    "codec": Words("codec", names.codec_names),
    "reasoning": Words("effort", fixed_words(*option_table.EFFORTS.partition(",")[0].split("|"))),
}
LISTS = ("model", "tools", "thought_tags")  # options whose values are separated by commas
# the arguments of a command in order; the last entry also counts for what follows it, unless None
ARGUMENTS: dict[str, tuple[Words | None, ...]] = {
    "models": (Words("provider", names.provider_names), None),
    "key": (
        Words("provider", names.provider_names),
        Words("option", fixed_words("--keyring")),
        None,
    ),
    "trust-folder": (Words("file", lambda s, b: ["--list", "--revoke", *files_ending()(s, b)]),),
    "revoke": (Words("tool", names.allowed_tools),),
    "context": (Words("option", fixed_words("--context", "-t", "-m")),),
    "mcp": (
        Words("action", fixed_words("allow", "revoke", "stop")),
        Words("server", names.server_names),
    ),
    "reset": (Words("conversation", names.conversation_names), None),
    "show": (_RUN, None),
    "events": (_RUN, None),
    "attach": (Words("option", fixed_words("-o", "--token", "--no-record")),),
    "recover": (Words("run", fixed_words("all", "others")), None),
    "forget": (Words("cell", lambda s, b: ["all", "maps", *names.cell_ids(s, b)]), None),
    "cell": (Words("cell", names.offered_cells), _RUN, None),
    "export": (
        Words("file", files_ending(".ndjson", ".jsonl", ".md", ".html", ".txt")),
        _RUN,
        None,
    ),
}


class Option(msgspec.Struct, frozen=True):
    """An option of the table, as far as completion needs it; `again`: it may be given again."""

    destination: str
    takes_value: bool
    again: bool
    choices: tuple[str, ...]


def _option(flags: tuple[str, ...], keywords: dict[str, Any]) -> Option:
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    action = keywords.get("action", "store")
    return Option(
        keywords.get("dest") or long.lstrip("-").replace("-", "_"),
        action in ("store", "append"),
        action == "append",
        tuple(keywords.get("choices", ())),
    )


_OPTIONS = {
    name: _option(flags, keywords) for flags, keywords in option_table.OPTIONS for name in flags
}


class Found(msgspec.Struct, frozen=True):
    """The names that fit, what they are, and the text before the cursor that they replace."""

    names: tuple[str, ...] = ()
    kind: str = ""
    begun: str = ""


def find_completions(session: Session, text: str, line: int, column: int) -> Found:
    """Return what fits at a line and column of a cell."""
    at = parse_typed(text, line, column)
    if at is None:
        return Found()
    return _cell(session, at) if at.magic == "cell" else _command(session, at)


def _cell(session: Session, at: Typed) -> Found:
    option, equals, value = at.begun.partition("=")
    if equals and option in _OPTIONS:
        return _value(session, _OPTIONS[option], value)
    before = _OPTIONS.get(at.arguments[-1]) if at.arguments else None
    if before is not None and before.takes_value:
        return _value(session, before, at.begun)
    if at.begun and not at.begun.startswith("-"):
        return Found()
    typed = {_OPTIONS[word].destination for word in at.arguments if word in _OPTIONS}
    # short names appear once a dash is typed; what is there already only if it repeats
    offered = [
        name
        for name, found in _OPTIONS.items()
        if (name.startswith("--") or at.begun or found.destination == "output")
        and (found.again or found.destination not in typed)
    ]
    return _fitting(offered, "option", at.begun)


def _value(session: Session, option: Option, begun: str) -> Found:
    """Return the values of an option that begin so; of a list, those of its last item."""
    if option.choices:
        return _fitting(option.choices, "choice", begun)
    destination = option.destination
    values = VALUES.get(destination)
    if values is None:
        return Found()
    if destination not in LISTS:
        return _fitting(values.source(session, begun), values.kind, begun)
    *chosen, last = begun.split(",")
    left = (name for name in values.source(session, last) if name not in chosen)
    return _fitting(left, values.kind, last)


def _command(session: Session, at: Typed) -> Found:
    from ..commands import COMMANDS

    if not at.arguments:
        return _fitting(COMMANDS, "command", at.begun)
    wanted = ARGUMENTS.get(at.arguments[0], (None,))
    source = wanted[min(len(at.arguments), len(wanted)) - 1]
    if source is None:
        return Found()
    left = (n for n in source.source(session, at.begun) if n not in at.arguments[1:])
    return _fitting(left, source.kind, at.begun)


def _fitting(candidates: Iterable[str], kind: str, begun: str) -> Found:
    fitting = dict.fromkeys(n for n in candidates if n.startswith(begun) and _typable(n))
    return Found(tuple(islice(fitting, names.MOST)), kind, begun)


def _typable(name: str) -> bool:
    """Return whether a name stands on a line as it is; one with white space needs quotes."""
    return name.isprintable() and not any(c.isspace() or c in "'\"" for c in name)
