"""The context of a prompt: what the model learns about the notebook's variables and cells.

Users ask about the frames of their notebook. Without its columns the model must run code to see
them, and running code needs an approval. `notebook.cell.context` gathers the text.

Rules
- The text precedes the run's own prompt, its first `User` outside spans. So it is not in the prefix
  that a provider caches, nor in the history of later prompts.
- The record holds the `Look` of each variable. It is not an input of the run, by which the record
  is found: `context_check` compares it, before a replay, with the variable of today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, get_args

import msgspec

from ..events import Event, State, User
from ..tools import VariableFacts, count_tokens
from ..wire import Redaction

KIND = "context"  # `kind` of the `State` that records the context
MOST_MENTIONS = 100  # mentions of a record that are read
# auto: variables without values; vars: first rows of frames too; cells: cells above too
Mode = Literal["auto", "vars", "cells", "none"]
_CONTEXT_SHARE = 8  # the text takes at most an eighth of the model's context
_TEXT_DTYPE, _TEXT_DTYPES = "object", ("object", "str")  # texts in pandas 2 and pandas 3
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "range"})


class Look(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a record holds of a variable, to compare it later. The record uses these field names.

    `dtypes`: (column, dtype) pairs; an array has one, with the column "". `more`: how many columns
    are not listed. `items`: length and item types of a container.
    """

    kind: str
    shape: tuple[int, ...] = ()
    dtypes: tuple[tuple[str, str], ...] = ()
    more: int = 0
    items: str = ""

    @classmethod
    def of(cls, variable: VariableFacts) -> Look:
        """Return the look of a described variable."""
        array_dtype = (("", variable.dtype),) if variable.dtype else ()
        items = variable.note if variable.kind in _CONTAINERS else ""
        dtypes, more = variable.columns or array_dtype, variable.columns_left_out
        return cls(variable.kind, variable.shape, dtypes, more, items)

    def describe_change(self, new: Look) -> str:
        """Return the first difference of the look `new` in words, "" if both are equal."""
        return next(_list_changes(self, new), "")


def _list_changes(old: Look, new: Look) -> Iterator[str]:
    """Yield the differences of two looks in words, the most telling ones first."""
    if old.kind != new.kind:
        yield f"{old.kind} → {new.kind}"
    if old.shape != new.shape:
        yield f"{_describe_shape(old)} → {_describe_shape(new)}"
    if old.items != new.items:
        yield f"{old.items} → {new.items}"
    old_dtypes, new_dtypes = _unify_dtypes(old), _unify_dtypes(new)
    for label in dict.fromkeys((*old_dtypes, *new_dtypes)):
        old_dtype, new_dtype = (d.get(label, "no column") for d in (old_dtypes, new_dtypes))
        if old_dtype != new_dtype:
            yield f"{label}: {old_dtype} → {new_dtype}" if label else f"{old_dtype} → {new_dtype}"
    # the first change if only the order of the columns, or the number of unlisted ones, differs
    if ([*old_dtypes], old.more) != ([*new_dtypes], new.more):
        yield "other columns"


def _unify_dtypes(look: Look) -> dict[str, str]:
    return {label: _TEXT_DTYPE if dtype in _TEXT_DTYPES else dtype for label, dtype in look.dtypes}


def _describe_shape(look: Look) -> str:
    return "×".join(map(str, look.shape)) or "a scalar"


class Mention(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user pointed a run at: an `@name` of the prompt, or a file of `--attach`.

    An `@name` of a recorded prompt without a mention is plain text. `text`: the `@name` as written,
    "" for an attached file. `name`: the variable's name, the file's path or the cell's id ("": it
    has none). `digest`: of the file, or of the cell's source. The record uses these field names.
    """

    text: str
    kind: Literal["variable", "file", "cell"]
    name: str
    digest: str = ""

    @classmethod
    def read_all(cls, run: Sequence[Event]) -> list[Mention]:
        """Return the mentions of a record; malformed ones are left out."""
        listed = read_payload(run).get("mentions")
        mentions: list[Mention] = []
        for value in listed[:MOST_MENTIONS] if isinstance(listed, list | tuple) else ():
            with suppress(msgspec.ValidationError, RecursionError):
                mentions.append(msgspec.convert(value, cls))
        return mentions


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What one run sends beside its prompt.

    `text`: precedes the prompt. `system`: a line for the system message; `about_tools`: a line that
    is sent only with tools. `described`: the variables that the text may name. `cells`: how many
    cells it shows. `why_live`: why a record was not played, in words.
    """

    MODES: ClassVar[tuple[Mode, ...]] = get_args(Mode)

    mode: Mode = "none"
    system: str = ""
    about_tools: str = ""
    text: str = ""
    described: Mapping[str, VariableFacts] = {}
    cells: int = 0
    mentions: tuple[Mention, ...] = ()
    why_live: tuple[str, ...] = ()

    def system_text(self, *, tools: bool = True) -> str:
        """Return the lines for the system message of a request, with `tools` or without."""
        return " ".join(filter(None, (self.system, self.about_tools if tools else "")))

    @property
    def tokens(self) -> int:
        """About how many tokens the text costs."""
        return sum(map(count_tokens, self.text.splitlines()))

    def fit_to(self, context_tokens: int) -> Context:
        """Return a copy whose `text` is cut, after a whole line, to an eighth of a model's context.

        A last line counts the lines that are left out. `context_tokens`: the size of the model's
        context (0: unknown, nothing is cut).
        """
        limit = context_tokens // _CONTEXT_SHARE
        if not limit or self.tokens <= limit:
            return self
        lines = self.text.splitlines()
        fitting: list[str] = []
        tokens_left = limit - count_tokens(_left_out_line(len(lines)))
        for line in lines:
            tokens_left -= count_tokens(line)
            if tokens_left < 0:
                break
            fitting.append(line)
        last_line = _left_out_line(len(lines) - len(fitting))
        return msgspec.structs.replace(self, text="\n".join([*fitting, last_line]))

    def prepend_to(self, run: Sequence[Event]) -> list[Event]:
        """Return the events of a run with the text in front of its prompt."""
        index = _index_of_prompt(run)
        events = list(run)
        if self.text and index is not None:
            user: Any = run[index]
            events[index] = msgspec.structs.replace(user, content=f"{self.text}\n\n{user.content}")
        return events

    def make_event(self, redaction: Redaction) -> State | None:
        """Return the event that records what was sent, None if nothing was."""
        if not (self.text or self.why_live):
            return None
        payload: dict[str, Any] = {
            "mode": self.mode,
            "text": self.text,
            "tokens": self.tokens,
            "variables": {n: msgspec.to_builtins(Look.of(d)) for n, d in self.described.items()},
        }
        optional = {
            "cells": self.cells,
            "mentions": msgspec.to_builtins(self.mentions),
            "changed": list(self.why_live),
        }
        payload |= {name: value for name, value in optional.items() if value}
        return State(kind=KIND, payload=redaction.value(payload))


def _left_out_line(count: int) -> str:
    return f"… {count:,} more line{'' if count == 1 else 's'}"


def find_context(run: Sequence[Event]) -> State | None:
    """Return the event that records the context of a run, None if there is none."""
    return next((e for e in run if isinstance(e, State) and e.kind == KIND and not e.span), None)


def read_payload(run: Sequence[Event]) -> Mapping[str, Any]:
    """Return the payload of the context event of a run, {} without one; it may hold any JSON."""
    event = find_context(run)
    return event.payload if event is not None and isinstance(event.payload, Mapping) else {}


def replace_context(run: Sequence[Event], event: State | None) -> list[Event]:
    """Return the events of a run with its context replaced by `event` (None: removed)."""
    old = find_context(run)
    events = [e for e in run if e is not old]
    index = _index_of_prompt(events)
    if event is not None and index is not None:
        events.insert(index + 1, msgspec.structs.replace(event, ts=events[index].ts))
    return events


def _index_of_prompt(run: Sequence[Event]) -> int | None:
    """Return the index of a run's own prompt, None if the run has none."""
    return next((n for n, e in enumerate(run) if isinstance(e, User) and not e.span), None)
