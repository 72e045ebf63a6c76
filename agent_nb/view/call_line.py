"""The arguments of a call as one line: the line of code that says most, or the values.

Why: the line is all that people see of most calls. The width of the page cuts it; `LONGEST` only
bounds it.

Rule: of code, the telling line is the first that is neither blank, nor a comment, docstring,
decorator, import, magic or shell setting, else the first that is not blank.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .format import clip_text, count_noun

LONGEST = 200  # characters of a line
LONGEST_VALUE = 80  # characters of one value among others
MOST_ITEMS = 6  # of a list that is shown
# name of an argument that is code, whatever its length -> its language, a Pygments name, or ""
CODE = {"code": "python", "command": "bash", "sql": "sql", "query": "", "script": "", "source": ""}
# name of a tool -> the language of its code, whatever the argument is called
LANGUAGES = {"python": "python", "shell": "bash", "bash": "bash", "sql": "sql"}
# arguments that name a file; its ending is the language of the other arguments' text
FILES = ("file", "path", "file_path", "filename")

_OPENS = re.compile(r"[^#'\"]*\([^)#]*(#.*)?\Z")  # an import goes on until the bracket closes
_IMPORT = re.compile(r"(?:import|from)\s")
_DOCSTRING = re.compile(r"(\"\"\"|''')(?!.*\1)")  # one that goes on below its first line
# a line that says little of what code does (see the rules)
_MINOR = re.compile(r"#|--\s|//|%%?(?!sql)|set [-+]|@|(?:import|from)\s|['\"]{3}.*['\"]{3}\Z")


class CallLine(NamedTuple):
    """The arguments of a call as text for its line.

    `language`: that of the text, if the text is code (`CODE`). `whole`: the text has all arguments
    in full. `prose`: the text is a sentence, such as the task of a sub-agent.
    """

    text: str
    language: str = ""
    whole: bool = True
    prose: bool = False


def describe_call(name: str, args: Mapping[str, Any]) -> CallLine:
    """Return the line of a call of the tool `name`."""
    for key in CODE:
        code = args.get(key)
        if isinstance(code, str):
            line = find_telling_line(code)
            is_all_code = line == code.strip()
            text = clip_text(line, LONGEST) + ("" if is_all_code else " …")
            whole = is_all_code and len(line) <= LONGEST and len(args) == 1
            return CallLine(text, find_language(name, key, args), whole)
    described = list(_describe_values(args))
    text = ", ".join(value_text for value_text, _ in described)
    whole = all(whole for _, whole in described) and len(text) <= LONGEST
    only = next(iter(args.values()), None) if len(args) == 1 else None
    prose = isinstance(only, str) and text.count(" ") > 1  # three words or more
    return CallLine(clip_text(text, LONGEST), "", whole, prose)


def find_telling_line(code: str) -> str:
    """Return the line of a source that says best what the source does, "" if all are blank."""
    lines = (line.strip() for line in code[:8000].splitlines())
    filled = [line for line in lines if line]
    end = ""  # of the import or docstring in which the line stands
    for line in filled:
        if end:
            end = "" if end in line else end
        elif docstring := _DOCSTRING.match(line):
            end = docstring[0]
        elif not _MINOR.match(line):
            return line
        elif _IMPORT.match(line) and _OPENS.match(line):
            end = ")"
    return filled[0] if filled else ""


def find_language(name: str, key: str, args: Mapping[str, Any]) -> str:
    """Return the language of the argument `key` of a call, "" if it is plain text."""
    if key in CODE:
        return LANGUAGES.get(name, CODE[key])
    file = next((args[k] for k in FILES if isinstance(args.get(k), str)), "")
    ending = file.rpartition(".")[2]
    return ending.lower() if "." in file and re.fullmatch(r"[A-Za-z]\w{0,7}", ending) else ""


def describe_fields(fields: Mapping[str, Any], limit: int = LONGEST) -> str:
    """Return fields with their names on one line: `unit=rows, depth=2`."""
    named_values = (f"{name}={_describe_value(value)[0]}" for name, value in fields.items())
    return clip_text(", ".join(named_values), limit)


def _describe_values(args: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield (text, whether it is the whole value) of each argument; long texts come last."""
    order = sorted(args, key=lambda k: isinstance(args[k], str) and _is_long(args[k]))
    for number, key in enumerate(order):
        value = args[key]
        text, complete = _describe_value(value, LONGEST if len(args) == 1 else LONGEST_VALUE)
        bare = number == 0 and isinstance(value, str)
        yield (text if bare else f"{key}={text}"), complete


def _is_long(text: str) -> bool:
    return len(text) > LONGEST_VALUE or "\n" in text.strip()


def _describe_value(value: Any, limit: int = LONGEST_VALUE) -> tuple[str, bool]:
    """Return a JSON value as text, and whether that is the whole value."""
    if isinstance(value, dict) and value:
        return f"{{{count_noun(len(value), 'field')}}}", False
    if isinstance(value, list) and value:
        list_text = _describe_list(value, limit)
        return list_text or f"[{count_noun(len(value), 'item')}]", bool(list_text)
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str), True
    first = next((line.strip() for line in value[:8000].splitlines() if line.strip()), "")
    if first != value.strip():
        return clip_text(first, limit - 2) + " …", False
    return clip_text(first, limit), len(first) <= limit


def _describe_list(items: list[Any], limit: int) -> str:
    """Return a short list of short scalars in words, "" for any other."""
    if len(items) > MOST_ITEMS or any(isinstance(item, dict | list) for item in items):
        return ""
    described = [_describe_value(item, limit) for item in items]
    list_text = f"[{', '.join(text for text, _ in described)}]"
    whole = len(list_text) <= limit and all(complete for _, complete in described)
    return list_text if whole else ""
