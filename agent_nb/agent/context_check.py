"""Compares the variables that a recorded run used with those that are here now.

A frame of another shape makes a recorded answer wrong without changing a word of the prompt.

Rules
- A plain word of the prompt, such as `text`, counts as a variable only if a tool of the run shares
  the variables, and never for a variable that is gone. In backticks it counts.
- A used variable that is gone is a change; an unused one is not, since its cell may come later.
"""

from __future__ import annotations

import os
import re
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..events import Event, User
from ..models import collect_secrets
from ..tools import Toolset, describe_variable, find_used_variables, one_line, text_entries
from ..wire import redact_text
from .code_names import CodeNames
from .context import Look, Mention, read_payload
from .recorded_turns import RecordedTurns

LONGEST_CHANGE = 100  # characters of a change in words
MOST_LISTED = 3  # changes that are listed; the others are only counted
_WORD = re.compile(r"`[^`\n]+`|\w+")
_SHORT_WORDS = frozenset({"a", "A", "I"})  # words that name a variable only between backticks


class Changes(msgspec.Struct, frozen=True):
    """How variables differ from when a run was recorded, in words.

    `used`: changes of variables that the run used, and of files and cells that its prompt mentions.
    `others`: changes of other variables.
    """

    used: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @classmethod
    def since(
        cls,
        turns: RecordedTurns,
        toolset: Toolset,
        namespace: dict[str, Any],
        compare: Callable[[Sequence[Mention], Collection[str]], Sequence[str]] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Changes:
        """Return how the variables in `namespace` differ from the variables of the recorded run.

        `compare` returns how the files and cells of recorded mentions differ, in words; it takes
        the mentions, and the paths of files that the run wrote itself. `secrets`: what the words
        must not show (None: all that is known now).
        """
        mentions = Mention.read_all(turns.events)
        descriptions = compare(mentions, _list_written(turns)) if compare is not None else ()
        of_mentions = [one_line(change, LONGEST_CHANGE) for change in descriptions]
        looks = _recorded_looks(turns.events)
        if not looks:
            return cls(tuple(of_mentions))
        used, plain_words = find_used(turns, toolset, namespace)
        of_used, others = [], []
        for name, difference in _find_differences(looks, namespace, secrets):
            change = one_line(f"`{name}` {difference or 'is gone'}", LONGEST_CHANGE)
            if name in used or (difference and name in plain_words):
                of_used.append(change)
            elif difference:
                others.append(change)
        return cls((*of_used, *of_mentions), tuple(others))

    def list_used(self) -> str:
        """Return the changes of used variables in words, the first few by name; "" if none."""
        return _list_first(self.used)

    def list_others(self) -> str:
        """Return the changes of other variables in words, the first few by name; "" if none."""
        return _list_first(self.others)


def find_mentioned(prompt: str, *, plain: bool = True) -> list[str]:
    """Return the words of a prompt that may name variables, in order.

    All names in backticks count and, with `plain`, all other words except a few short ones.
    """
    names: dict[str, None] = {}
    for word in _WORD.findall(prompt):
        quoted = word.strip("`")
        if quoted != word:
            names |= dict.fromkeys(re.findall(r"\w+", quoted))
        elif plain and word not in _SHORT_WORDS:
            names[word] = None
    return list(names)


def find_used(
    turns: RecordedTurns, toolset: Toolset, namespace: dict[str, Any]
) -> tuple[set[str], set[str]]:
    """Return the variables that a recorded run used, and plain words that may name others."""
    code = _read_calls(turns, toolset, namespace)
    assigned = code.assigned - code.read.keys()
    prompt = User.first_in(turns.events).content
    mentioned = (m.name for m in Mention.read_all(turns.events) if m.kind == "variable")
    used = {*code.read, *find_mentioned(prompt, plain=False), *mentioned} - assigned
    if not any(RecordedTurns.shares_variables(tool) for tool in toolset):
        return used, set()
    return used, {*find_mentioned(prompt)} - assigned


def _read_calls(turns: RecordedTurns, toolset: Toolset, namespace: dict[str, Any]) -> CodeNames:
    """Collect the names in the code of a recorded run's calls, and those that its tools read."""
    names, calls = CodeNames(), turns.finished_calls
    has_code = any(call.name == "python" for call in calls)
    variables = dict(text_entries(namespace)) if has_code else {}
    for call in calls:
        args, tool = turns.arguments(call), turns.tool_of(call, toolset)
        code, shown = args.get("code"), args.get("name")
        if call.name == "python" and isinstance(code, str):
            earlier = set(names.read)
            names.add_code(code)
            functions = [variables.get(name) for name in names.read if name not in earlier]
            for function in functions:
                if type(function) is types.FunctionType:
                    names.add_read(find_used_variables(function))
        elif call.name == "variables" and isinstance(shown, str):
            names.add_read([shown])
        elif tool is not None and RecordedTurns.touches_kernel(tool):
            # not for tools with other effects: their calls do not run again, and may themselves
            # have changed the variables that they use
            names.add_read(find_used_variables(tool.invoke))
    return names


def _list_written(turns: RecordedTurns) -> set[str]:
    """Return the paths of the files that a recorded run wrote with `write`."""
    calls = (call for call in turns.finished_calls if call.name == "write")
    return {os.path.normpath(str(turns.arguments(call).get("file"))) for call in calls}


def _find_differences(
    looks: Mapping[str, Look], namespace: dict[str, Any], secrets: Mapping[str, str] | None
) -> Iterator[tuple[str, str]]:
    """Yield each changed variable and its difference in words, "" for one that is gone."""
    variables, hidden = dict(text_entries(namespace)), collect_secrets(secrets)
    for name, look in looks.items():
        if name not in variables:
            yield name, ""
            continue
        described = describe_variable(name, variables[name], lambda text: redact_text(text, hidden))
        if difference := look.describe_change(Look.of(described)):
            yield name, difference


def _list_first(changes: Sequence[str]) -> str:
    if len(changes) <= MOST_LISTED:
        return ", ".join(changes)
    return ", ".join([*changes[:MOST_LISTED], f"{len(changes) - MOST_LISTED} more"])


def _recorded_looks(run: Sequence[Event]) -> dict[str, Look]:
    """Return variable -> look, as a record has them; malformed looks are left out."""
    variables = read_payload(run).get("variables")
    looks: dict[str, Look] = {}
    for name, value in variables.items() if isinstance(variables, Mapping) else ():
        with suppress(msgspec.ValidationError, RecursionError):
            looks[name] = msgspec.convert(value, Look)
    return looks
