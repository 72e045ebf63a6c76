"""The reference pages of the book, made from the package when the book is built.

A page says ```` ```{reference} options ```` where a table belongs; `TABLES` has the functions that
write them as Markdown. Nothing of the reference is written by hand, so nothing of it goes stale.

Rules
- The package is read through its face, the doors of its rooms and its parsers; only `names` needs
  Sphinx (autodoc).
- A docstring is plain text with code in single backticks; an indented block is code.
"""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

import agent_nb
from agent_nb import errors, events
from agent_nb.cli.main import make_parser
from agent_nb.host import list_plugins, load_plugin
from agent_nb.rows import MapStream

CHECKOUT = Path(__file__).parents[2]
SCHEMA = resources.files("agent_nb") / "record" / "schema.json"
#: the members that users call; other public members serve the rooms of the package
MEMBERS = {
    "Agent": "__call__ run_sync map map_sync eval eval_sync as_tool aclose",
    "Stream": "cancel stop aclose",
    "Run": "prompt answer status reason error output output_as output_frame usage events messages "
    "to_frame timeline show save raise_for_status id",
    "EventLog": "of select subscribe append ended to_frame to_list to_ndjson from_ndjson of_events",
    "ToolContext": "progress cancelled on_cancel",
}
#: the public names by page, each once
NAMES = {
    "agents": "Agent Stream Run RunFailed compare load_ipython_extension unload_ipython_extension",
    "tools-and-models": "tool ToolContext Pictured mcp_server adapt_tool_event parse Scripted",
    "events-and-streams": "EventLog runs EVENTS CALLS TURNS RUNS decode encode watch serve attach",
}
#: what public functions return, and the members of it that users read
RESULTS = {
    "agent.map": "frame rows runs cancel stop aclose",
    "agent.eval": "mean interval words rows failed failures unsteady tokens cost frame answers plot",
    "compare": "difference interval verdict words changes rows notes tokens cost spent frame changed plot",
    "runs": "rows to_frame",
    "attach": "run approve stop cancel",
    "watch": "run runs codec lost stop",
    "serve": "url token runs running add stop",
}
COLUMN_LISTS = {
    "EVENTS": "one row per event",
    "CALLS": "one row per tool call",
    "TURNS": "one row per turn of the model",
    "RUNS": "one row per run",
}


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(str(c)) for c in row)} |" for row in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def code(text: object) -> str:
    """Return `text` as inline code."""
    return f"`{text}`" if str(text) else ""


def text_of(docstring: str | None) -> str:
    """Return the text of a docstring, its indented blocks as code."""
    return inspect.cleandoc(docstring or "")


def a_shell() -> Any:
    """Return an IPython shell with the extension, of which nothing stays."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    agent_nb.load_ipython_extension(shell)
    return shell


def options() -> str:
    """Return the options of `%%agent`, from its parser."""
    cell = a_shell().magics_manager.registry["AgentMagics"].agent_cell
    return _arguments(cell.parser)


def defaults() -> str:
    """Return the traits of `%config AgentMagics`, from the class."""
    magics = type(a_shell().magics_manager.registry["AgentMagics"])
    traits = magics.class_own_traits(config=True)
    rows = [
        (code(name), code(json.dumps(trait.default())) if trait.default() else "", trait.help)
        for name, trait in traits.items()
    ]
    return table(("trait", "default", "meaning"), rows)


def commands() -> str:
    """Return the commands of `%agent`, as `%agent help` lists them."""
    from IPython.utils.capture import capture_output

    with capture_output() as captured:
        a_shell().run_line_magic("agent", "help")
    lines: list[list[str]] = []
    for line in captured.stdout.splitlines():
        if line.startswith("%agent "):
            name, _, text = line.partition("  ")
            lines.append([name, text.strip()])
        elif line.startswith("    "):
            lines[-1][1] += f" {line.strip()}"
    return table(("command", "what it does"), [(code(name), text) for name, text in lines])


def command_line() -> str:
    """Return every command of `jupyter agent-nb` with its options, from the parser."""
    return "\n\n".join(_command(name, sub) for name, sub in _subcommands(make_parser()))


def _subcommands(of: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in of._actions:  # noqa: SLF001  (argparse has no public list)
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action.choices.items()


def _command(name: str, of: argparse.ArgumentParser) -> str:
    parts = [f"## {name}", f"{of.description}." if of.description else ""]
    for inner, sub in _subcommands(of):
        parts.append(f"`{name} {inner}`: {sub.description or ''}".rstrip(": "))
        parts.append(_arguments(sub))
    if not any(True for _ in _subcommands(of)):
        parts.append(_arguments(of))
    return "\n\n".join(part for part in parts if part)


def _arguments(of: argparse.ArgumentParser) -> str:
    rows = []
    for action in of._actions:  # noqa: SLF001
        if "--help" in action.option_strings or action.help == argparse.SUPPRESS:
            continue
        value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
        names = ", ".join(code(name) for name in action.option_strings)
        rows.append((f"{names} {code(value)}".strip(), action.help or ""))
    return table(("argument", "meaning"), rows) if rows else ""


def event_types() -> str:
    """Return the types of events with their fields."""
    parts = ["## Every event", text_of(events.Event.__doc__), _fields(events.Event, ())]
    shared = events.Event.__struct_fields__
    for name, kind in events.TYPES.items():
        parts += [f"## {name}", text_of(kind.__doc__), _fields(kind, shared)]
    parts += ["## counts", text_of(events.Counts.__doc__), _fields(events.Counts, ())]
    return "\n\n".join(parts)


def _fields(kind: Any, without: Sequence[str]) -> str:
    annotations = {
        name: text
        for c in reversed(kind.__mro__)
        for name, text in vars(c).get("__annotations__", {}).items()
    }
    names = [name for name in kind.__struct_fields__ if name not in without]
    return ", ".join(f"`{n}: {annotations[n]}`" for n in names) + "." if names else ""


def columns() -> str:
    """Return the columns of the frames."""
    parts = []
    for name, what in COLUMN_LISTS.items():
        short = {column.name for column in getattr(agent_nb, name)}
        more = events.PRESETS["all" if name == "EVENTS" else f"all {name.lower()}"]
        parts.append(f"## {name.lower()}: {what}")
        parts.append(
            table(
                ("column", "kind", "short list", "meaning"),
                [(code(c.name), c.kind, "yes" if c.name in short else "", c.doc) for c in more],
            )
        )
    return "\n\n".join(parts)


def schema() -> str:
    """Return the fields of a record, from its JSON Schema."""
    definitions = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"]
    parts = []
    for name in ("record", "cut"):
        parts += [f"## {name}", definitions[name]["description"], _properties(definitions[name])]
    return "\n\n".join(parts)


def _properties(definition: dict[str, Any]) -> str:
    rows = [
        (code(name), _type(value), code(json.dumps(value["default"])) if "default" in value else "")
        for name, value in definition["properties"].items()
    ]
    return table(("field", "type", "default"), rows)


def _type(value: dict[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_type(v) for v in value["anyOf"] if v.get("$ref") != "#/$defs/packed")
    return str(value.get("type") or value.get("$ref", "any").rpartition("/")[2])


def error_types() -> str:
    """Return the errors of the package with what they are for."""
    rows = [
        (code(name), code(kind.__bases__[0].__name__), text_of(kind.__doc__).replace("\n\n", " "))
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and kind.__module__ == errors.__name__
    ]
    return table(("error", "is a", "when"), rows)


def extras() -> str:
    """Return the extras that users install, from pyproject.toml."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    ours = ("bench", "interop", "test", "book")
    rows = [
        (code(name), ", ".join(code(n) for n in needs))
        for name, needs in project["optional-dependencies"].items()
        if name not in ours
    ]
    return table(("extra", "installs"), rows)


def built_in() -> str:
    """Return the plug-ins that the package brings, by kind."""
    kinds = ("models", "dialects", "codecs", "tools")
    return table(
        ("kind", "built in"),
        [(kind, ", ".join(code(n) for n in list_plugins(kind))) for kind in kinds],
    )


def built_in_tools() -> str:
    """Return the built-in tools with what they take and do."""
    rows = []
    tools = [tool for plugin in list_plugins("tools") for tool in load_plugin("tools", plugin)]
    for tool in sorted(tools, key=lambda tool: tool.spec.name):
        taken = ", ".join(tool.spec.parameters.get("properties", {}))
        rows.append((code(f"{tool.spec.name}({taken})"), tool.effect, tool.spec.description))
    return table(("tool", "effect", "what the model reads about it"), rows)


def front_ends() -> str:
    """Return what each front end gets; each cell of the table is a test of `tests/profiles`."""
    path = CHECKOUT / "tests" / "profiles" / "table.py"
    spec = importlib.util.spec_from_file_location("front_end_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.markdown()
    return text


def glossary() -> str:
    """Return the terms of the package with their meaning, from `agent_nb/README.md`."""
    page = (CHECKOUT / "agent_nb" / "README.md").read_text(encoding="utf-8")
    rows = [
        line.split("|")[1:4]
        for line in page.partition("## Glossary")[2].splitlines()
        if "|" in line
    ]
    terms = sorted((term.strip(), meaning.strip()) for term, meaning, _ in rows[2:])
    entries = "\n\n".join(f"{term}\n  {text[:1].upper()}{text[1:]}." for term, text in terms)
    return f"```{{glossary}}\n{entries}\n```"


def names(page: str) -> str:
    """Return the public names of one page for autodoc."""
    chosen = NAMES[page].split()
    return "\n\n".join(f"```{{eval-rst}}\n{_name(name)}\n```" for name in chosen)


def _name(name: str) -> str:
    value = getattr(agent_nb, name)
    if name in COLUMN_LISTS:
        return f".. py:data:: agent_nb.{name}\n\n   The columns of a frame with {COLUMN_LISTS[name]}; see the page on columns."
    kind = "exception" if inspect.isclass(value) and issubclass(value, Exception) else "class"
    if not inspect.isclass(value):
        kind = "function"
    members = MEMBERS.get(name, "").split()
    lines = [f".. auto{kind}:: agent_nb.{name}"]
    if members:
        lines.append(f"   :members: {', '.join(m for m in members if m != '__call__')}")
    if "__call__" in members:
        lines.append("   :special-members: __call__")
    return "\n".join(lines)


def results() -> str:
    """Return the members of what public functions return, from their docstrings."""
    parts = []
    for function, members in RESULTS.items():
        kind = _result_of(function)
        rows = [(code(name), summary_of(getattr(kind, name))) for name in members.split()]
        parts += [f"## {function}: {kind.__name__}", text_of(kind.__doc__)]
        parts.append(table(("member", "meaning"), rows))
    return "\n\n".join(parts)


def _result_of(function: str) -> Any:
    """Return the class of what a public function returns."""
    if function == "agent.map":
        return MapStream
    if function == "agent.eval":
        return get_type_hints(agent_nb.compare)["a"]
    value = getattr(agent_nb, function)
    return getattr(inspect.getmodule(value), value.__annotations__["return"])


def summary_of(member: object) -> str:
    """Return the first sentence of a docstring."""
    return " ".join(text_of(inspect.getdoc(member)).partition("\n\n")[0].split())


def contracts() -> str:
    """Return what a plug-in of each kind promises: the docstring of its room's `base` module."""
    parts = []
    for room in ("models", "dialects", "codecs", "tools", "view.cards"):
        module = importlib.import_module(f"agent_nb.{room}.base")
        parts += [f"## {room}", text_of(module.__doc__)]
        for name, kind in vars(module).items():
            if getattr(kind, "_is_protocol", False) and kind.__module__ == module.__name__:
                parts += [f"**{name}**: {summary_of(kind)}", _members(kind)]
    return "\n\n".join(parts)


def _members(kind: type) -> str:
    """Return the attributes and methods of a protocol."""
    rows = [(code(f"{name}: {text}"), "") for name, text in kind.__annotations__.items()]
    rows += [
        (code(f"{name}{inspect.signature(member)}".replace("'", "")), summary_of(member))
        for name, member in vars(kind).items()
        if inspect.isfunction(member) and not name.startswith("_")
    ]
    return table(("member", "meaning"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "options": options,
    "defaults": defaults,
    "commands": commands,
    "command-line": command_line,
    "events": event_types,
    "columns": columns,
    "schema": schema,
    "errors": error_types,
    "extras": extras,
    "built-in": built_in,
    "built-in-tools": built_in_tools,
    "front-ends": front_ends,
    "glossary": glossary,
    **{page: partial(names, page) for page in NAMES},
    "results": results,
    "contracts": contracts,
}


def as_rst(lines: Sequence[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText.

    An indented block becomes code, a paragraph about parameters a list of them. What markup would
    take for its own outside code is escaped.
    """
    result: list[str] = []
    for is_code, group in groupby(_marked(lines), key=lambda marked: marked[0]):
        block = [line for _, line in group]
        if is_code:
            result += ["::", "", *block, ""]
        else:
            for paragraph in "\n".join(block).split("\n\n"):
                result += [*_CODE.sub(_inline, _listed(paragraph)).split("\n"), ""]
    return result


_PARAMETER = re.compile(r"(?:^|(?<=[.;)]\s))(?=(?:`\w+`(?:, | and )?)+:\s)")
_REST = re.compile(r"(?<=[.)]\s)(?=Raises [A-Z]\w+)")


def _listed(paragraph: str) -> str:
    """Return a paragraph; one about three parameters or more as a list of them."""
    before, *parameters = _PARAMETER.split(paragraph)
    if len(parameters) < 3:
        return paragraph
    parameters[-1], *rest = _REST.split(parameters[-1], maxsplit=1)
    items = (" ".join(parameter.split()) for parameter in parameters)
    return "\n\n".join([*filter(None, [before.strip()]), *(f"- {item}" for item in items), *rest])


_CODE = re.compile(r"`+([^`]+)`+|([*|]|_\b)")


def _inline(match: re.Match[str]) -> str:
    return f"``{match[1]}``\\ " if match[1] else f"\\{match[2]}"


def _marked(lines: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield each line, and whether it is part of an indented block."""
    inside = False
    for number, line in enumerate(lines):
        if line.strip():
            inside = line.startswith("    ") and (inside or not lines[number - 1].strip())
        yield inside, line


def _as_rst(
    _app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]
) -> None:
    lines[:] = as_rst(lines)


_FILE = re.compile(r"^<!-- file: (\S+) -->\n+```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _name_files(_app: Any, _page: str, source: list[str]) -> None:
    """Show the name of a file above its fence; `<!-- file: NAME -->` has it for the tests."""
    source[0] = _FILE.sub(r"```{code-block} \2\n:caption: \1\n\n\3```", source[0])


def setup(app: Any) -> dict[str, bool]:
    """Add the directives to Sphinx."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Reference(SphinxDirective):
        """Puts the table that its argument names into the page."""

        required_arguments = 1

        def run(self) -> list[nodes.Node]:
            """Return the nodes of the table."""
            text = TABLES[self.arguments[0]]()
            parsed: list[nodes.Node] = self.parse_text_to_nodes(text, allow_section_headings=True)
            return parsed

    class Card(SphinxDirective):
        """Shows the picture of a card, on light and on dark ground, with its content as caption.

        `tests/browser/test_book_cards.py` makes the pictures.
        """

        required_arguments = 1
        option_spec: ClassVar = {"alt": str}
        has_content = True

        def run(self) -> list[nodes.Node]:
            """Return the nodes of the pictures and the caption."""
            pictures: list[nodes.Node] = [
                nodes.image(
                    uri=f"/book/cards/{self.arguments[0]}-{theme}.png",
                    alt=self.options["alt"],
                    classes=[f"only-{theme}"],
                )
                for theme in ("light", "dark")
            ]
            caption = self.parse_text_to_nodes("\n".join(self.content))
            return [*pictures, *caption]

    app.add_directive("card", Card)
    app.add_directive("reference", Reference)
    app.connect("autodoc-process-docstring", _as_rst)
    app.connect("source-read", _name_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
