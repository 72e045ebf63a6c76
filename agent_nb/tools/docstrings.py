"""Parse a docstring (Google, NumPy or reST): the description of a function and its parameters.

Why: a model reads both in the schema of a tool, and people write docstrings in all three styles.
"""

from __future__ import annotations

import inspect
import re
from itertools import pairwise

import msgspec

# titles, in lower case, of the sections that describe parameters, and of the other sections
_OF_PARAMETERS = """args, arguments, parameters, params, keyword args, keyword arguments, \
other parameters"""
_OTHERS = """returns, return, yields, yield, raises, raise, warns, warnings, note, notes, \
example, examples, attributes, references, see also, todo"""
_PARAMETERS = set(_OF_PARAMETERS.split(", "))
_SECTIONS = _PARAMETERS | set(_OTHERS.split(", "))  # each ends the description
# the line of dashes below a NumPy section title
_UNDERLINE = re.compile(r"^\s*-{3,}\s*$")
# a reST field: `:param x: …`, `@param x: …`; not a role, such as :class:`Table`
_FIELD = re.compile(r"^\s*[:@](?P<field>\w+)(?:\s+(?P<rest>[^:]*))?:(?!`)\s*(?P<text>.*)$")
# the first line of a parameter's entry: Google `x (list of (int, str)): …`, NumPy `x, y : int`
_GOOGLE_ENTRY = re.compile(
    r"^(?P<names>\*{0,2}\w+)\s*(?:\((?:[^()]|\([^()]*\))*\)\s*)?:\s*(?P<text>.*)$"
)
_NUMPY_ENTRY = re.compile(r"^(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
# reST fields that describe a parameter, and all that end the description
_PARAM_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword"}
_FIELDS = _PARAM_FIELDS | {"return", "returns", "rtype", "raises", "type"}


class Doc(msgspec.Struct, frozen=True):
    """A parsed docstring: the description of the function, and that of each parameter by name."""

    description: str = ""
    parameters: dict[str, str] = {}


def parse_docstring(text: str | None) -> Doc:
    """Return the parsed docstring `text`; an empty Doc for None."""
    lines = inspect.cleandoc(text or "").splitlines()
    parameters: dict[str, str] = {}
    fields = [(match := _FIELD.match(line)) and match["field"] in _FIELDS for line in lines]
    start = next((i for i in range(len(lines)) if _read_title(lines, i) or fields[i]), len(lines))
    description = "\n".join(lines[:start]).strip()
    for title, numpy, body in _split_sections(lines[start:]):
        if title in _PARAMETERS:
            parameters.update(_read_entries(body, _NUMPY_ENTRY if numpy else _GOOGLE_ENTRY))
    parameters.update(_read_fields(lines[start:]))
    return Doc(description, parameters)


def _read_title(lines: list[str], index: int) -> str:
    """Return the title of the section that begins at line `index`, in lower case; "" if none does.

    A title has a line of dashes below it (NumPy), or is one of `_SECTIONS` with a colon (Google).
    """
    line = lines[index].strip()
    if index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1]):
        return line.lower()
    name = line.removesuffix(":").lower()
    is_title = line.endswith(":") and name in _SECTIONS and not lines[index][:1].isspace()
    return name if is_title else ""


def _split_sections(lines: list[str]) -> list[tuple[str, bool, list[str]]]:
    """Return for each section its title, whether it is in NumPy's form, and its lines."""
    starts = [i for i in range(len(lines)) if _read_title(lines, i)]
    sections = []
    for start, end in pairwise([*starts, len(lines)]):
        numpy = not lines[start].strip().endswith(":")
        # a NumPy title has its line of dashes below, which is skipped too
        sections.append((_read_title(lines, start), numpy, lines[start + 1 + numpy : end]))
    return sections


def _read_entries(body: list[str], form: re.Pattern[str]) -> dict[str, str]:
    """Return the text of each parameter in the section `body`.

    `form` matches the first line of an entry. The entries have the indent of the first one; deeper
    lines continue an entry, and a line with a smaller indent is not part of the section.
    """
    entries: dict[str, str] = {}
    names: list[str] = []
    lines = [line for line in body if line.strip()]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    for line, indent in zip(lines, indents, strict=True):
        if indent < indents[0]:
            break
        match = form.match(line.strip()) if indent == indents[0] else None
        if match:
            names = [name.strip().lstrip("*") for name in match["names"].split(",")]
        for name in names:  # several in NumPy's form: `x, y : int`
            piece = match.groupdict().get("text") or "" if match else line.strip()
            entries[name] = f"{entries.get(name, '')} {piece}".strip()
    return entries


def _read_fields(lines: list[str]) -> dict[str, str]:
    """Return the texts of the parameters in fields of reST (`:param x: …`)."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        match = _FIELD.match(line)
        if match:
            # a type may stand before the name: `:param int x: …`
            terms = (match["rest"] or "").split()
            name = terms[-1].lstrip("*") if terms and match["field"] in _PARAM_FIELDS else ""
        if name:
            piece = match["text"] if match else line
            fields[name] = f"{fields.get(name, '')} {piece.strip()}".strip()
    return fields
