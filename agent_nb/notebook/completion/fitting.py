"""Find the names that complete what the user types, by tables of options and commands.

An entry of `OPTION_VALUES` or `COMMAND_ARGUMENTS` gives an option or a command its completions. An
option with fixed choices needs no entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from ...host import list_plugins
from ...tools import KERNEL_PERMISSIONS
from .. import option_table
from . import names
from .line import Typed, parse_typed
from .names import Source, files_ending, fixed_words

if TYPE_CHECKING:
    from ..session import Session


class Candidates(msgspec.Struct, frozen=True):
    """What an option or argument takes: `source` yields names, `kind` describes them to users."""

    kind: str
    source: Source


class Completions(msgspec.Struct, frozen=True):
    """The names that fit, and the text before the cursor that they replace (`prefix`).

    `kind`: what they are. `kinds`: the kinds of single names that differ from it.
    """

    names: tuple[str, ...] = ()
    kind: str = ""
    prefix: str = ""
    kinds: Mapping[str, str] = {}


def find_completions(session: Session, text: str, line: int, column: int) -> Completions:
    """Return the completions at a line and column (from 0) of the cell `text`."""
    typed = parse_typed(text, line, column)
    if typed is None:
        return Completions()
    if typed.magic == "cell":
        return _complete_option(session, typed)
    if typed.magic == "mention":
        return _complete_mention(session, typed.prefix)
    return _complete_command(session, typed)


def _complete_option(session: Session, typed: Typed) -> Completions:
    """Return the completions on the first line of a cell: options, or the values of one."""
    flag, equals, value = typed.prefix.partition("=")
    if equals and flag in _OPTIONS:
        return _complete_value(session, _OPTIONS[flag], value)
    previous = _OPTIONS.get(typed.arguments[-1]) if typed.arguments else None
    if previous is not None and previous.takes_value:
        return _complete_value(session, previous, typed.prefix)
    if typed.prefix and not typed.prefix.startswith("-"):
        return Completions()
    written_flags = [word.partition("=")[0] for word in typed.arguments]
    present = {_OPTIONS[word].destination for word in written_flags if word in _OPTIONS}
    # before a dash is typed, -o is the only short name; an option is offered again if it may repeat
    offered = [
        name
        for name, option in _OPTIONS.items()
        if (name.startswith("--") or typed.prefix or option.destination == "output")
        and (option.repeats or option.destination not in present)
    ]
    return _select_fitting(offered, "option", typed.prefix)


def _complete_value(session: Session, option: Option, prefix: str) -> Completions:
    """Return the values of an option that begin with `prefix`, or with the last item of a list."""
    if option.choices:
        return _select_fitting(option.choices, "choice", prefix)
    destination = option.destination
    values = OPTION_VALUES.get(destination)
    if values is None:
        return Completions()
    if destination not in LIST_OPTIONS:
        return _select_fitting(values.source(session, prefix), values.kind, prefix)
    *chosen, last = prefix.split(",")
    unused = (name for name in values.source(session, last) if name not in chosen)
    return _select_fitting(unused, values.kind, last)


def _complete_command(session: Session, typed: Typed) -> Completions:
    """Return the completions on a `%agent` line: commands, or the arguments of one."""
    from ..commands import COMMANDS

    if not typed.arguments:
        return _select_fitting(COMMANDS, "command", typed.prefix)
    arguments = COMMAND_ARGUMENTS.get(typed.arguments[0], (None,))
    argument = arguments[min(len(typed.arguments), len(arguments)) - 1]
    if argument is None:
        return Completions()
    unused = (n for n in argument.source(session, typed.prefix) if n not in typed.arguments[1:])
    return _select_fitting(unused, argument.kind, typed.prefix)


def _complete_mention(session: Session, prefix: str) -> Completions:
    """Return what an `@name` that begins with `prefix` can mean: variables, cells, then files."""
    kinds: dict[str, str] = {}
    for kind, source in names.MENTIONS.items():
        for name in source(session, prefix):
            if len(kinds) == names.MOST_NAMES:
                break
            if name.startswith(prefix):
                kinds.setdefault(name, kind)
    return Completions(tuple(kinds), "", prefix, kinds)


def _select_fitting(candidates: Iterable[str], kind: str, prefix: str) -> Completions:
    """Return the candidates that begin with `prefix`, each once, at most `names.MOST_NAMES`."""
    fitting = dict.fromkeys(n for n in candidates if n.startswith(prefix) and _is_typable(n))
    return Completions(tuple(islice(fitting, names.MOST_NAMES)), kind, prefix)


def _is_typable(name: str) -> bool:
    """Return whether a name can be written on a line without quotes."""
    return name.isprintable() and not any(c.isspace() or c in "'\"" for c in name)


class Option(msgspec.Struct, frozen=True):
    """An option of the table, as completion needs it.

    `destination`: argparse's `dest`. `repeats`: the option may stand twice. `choices`: its fixed
    values, () if it takes others.
    """

    destination: str
    takes_value: bool
    repeats: bool
    choices: tuple[str, ...]


def _read_option(flags: Sequence[str], keywords: dict[str, Any]) -> Option:
    """Return an entry of the option table as completion needs it."""
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    action = keywords.get("action", "store")
    return Option(
        keywords.get("dest") or long.lstrip("-").replace("-", "_"),
        action in ("store", "append"),
        action == "append",
        tuple(keywords.get("choices", ())),
    )


def _with_files(*choices: str, endings: Sequence[str] = ()) -> Source:
    """Return a source of fixed choices, and of folders and files with these endings (none: all)."""
    files = files_ending(*endings)
    return lambda session, prefix: [*choices, *files(session, prefix)]


_FILE = Candidates("file", files_ending())
_PROVIDER = Candidates("provider", names.provider_names)
_TRUSTED = Candidates("file", _with_files("--list", "--revoke"))
_RUN = Candidates("run", names.run_ids)
_SERVER_ACTION = Candidates("action", fixed_words("allow", "revoke", "stop"))
_EXPORTED = Candidates("file", files_ending(".ndjson", ".jsonl", ".md", ".html", ".txt"))
# name of an option in the parser (argparse's `dest`) -> what its value can be
OPTION_VALUES: dict[str, Candidates] = {
    "model": Candidates("model", names.model_names),
    "tools": Candidates("tool", names.tool_names),
    "dialect": Candidates("dialect", lambda *_: list_plugins("dialects")),
    "output": Candidates("variable", names.variable_names),
    "kind": Candidates("type", names.type_names),
    "conversation": Candidates("conversation", names.conversation_names),
    "approve": Candidates(
        "approval", _with_files("ask", "auto", "deny", endings=(".yaml", ".yml"))
    ),
    "attach": Candidates("file", names.attachable_names),
    "source": _FILE,
    "map": Candidates("data", names.table_names),
    "store": _FILE,
    "codec": Candidates("codec", lambda *_: list_plugins("codecs")),
    "reasoning": Candidates("effort", fixed_words(*option_table.EFFORTS)),
}
LIST_OPTIONS = ("model", "tools", "thought_tags")  # options whose values are separated by commas
# the arguments of a command, in order; the last entry also serves further arguments, unless None
COMMAND_ARGUMENTS: dict[str, tuple[Candidates | None, ...]] = {
    "models": (_PROVIDER, None),
    "key": (_PROVIDER, Candidates("option", fixed_words("--keyring")), None),
    "trust-folder": (_TRUSTED,),
    "revoke": (Candidates("tool", lambda *_: KERNEL_PERMISSIONS.names),),
    "context": (Candidates("option", fixed_words("--context", "-t", "-m")),),
    "mcp": (_SERVER_ACTION, Candidates("server", names.server_names)),
    "reset": (Candidates("conversation", names.conversation_names), None),
    "show": (_RUN, None),
    "events": (_RUN, None),
    "attach": (Candidates("option", fixed_words("-o", "--token", "--no-record")),),
    "recover": (Candidates("run", fixed_words("all", "others")), None),
    "forget": (Candidates("cell", lambda session, _: ["all", "maps", *session.runs]),),
    "cell": (Candidates("cell", names.offered_cells), _RUN, None),
    "export": (_EXPORTED, _RUN, None),
}
_OPTIONS = {  # by each name of the option, such as `-m` and `--model`
    name: _read_option(flags, keywords)
    for flags, keywords in option_table.OPTIONS
    for name in flags
}
