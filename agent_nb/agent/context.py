"""What a model is given about the notebook beside the prompt: its variables, and the cells above.

Why: a question is about *this* frame, and a model that must run code to see what there is needs an
approval for it. The notebook gathers (`notebook.cell.context`); here the text is fitted to the
model, put beside the prompt and logged.

Rules
- The text stands before the newest prompt only: not in the cached prefix, not in later history.
- What an `@name` of the prompt meant is recorded as a `Mention`. A record without one had no such
  name, whatever its prompt says: `@alice` stays as it was written.
- The text is at most an eighth of a model's context. What is left out is counted in its last line.
- A look has types, shapes and dtypes, never values. It is not among the inputs of a run: a record
  is found without it (`context_check` compares the looks of variables that the run used). The dtype
  of texts, `object` in pandas 2 and `str` in pandas 3, counts as the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, get_args

import msgspec

from ..events import Event, State, User
from ..tools import Described, count_tokens
from ..wire import Redaction

KIND = "context"  # of the event
MENTIONS = 100  # of a record that are read
Mode = Literal["auto", "vars", "cells", "none"]
_CONTEXT_PART = 8  # the text takes at most an eighth of the model's context
_TEXT_DTYPE, _TEXT_DTYPES = "object", ("object", "str")  # texts in pandas 2 and pandas 3
_CONTAINERS = frozenset({"list", "tuple", "set", "frozenset", "dict", "range"})


class Look(msgspec.Struct, frozen=True, omit_defaults=True):
    """A variable as it is compared. The field names are those of the record.

    `kind`: its type. `dtypes`: (column, dtype), of an array with the column "". `more`: how many
    columns are not listed. `items`: of a container, its length and the types of its items.
    """

    kind: str
    shape: tuple[int, ...] = ()
    dtypes: tuple[tuple[str, str], ...] = ()
    more: int = 0
    items: str = ""

    @classmethod
    def of(cls, variable: Described) -> Look:
        """Return the look of a described variable."""
        own = (("", variable.dtype),) if variable.dtype else ()
        items = variable.note if variable.kind in _CONTAINERS else ""
        return cls(variable.kind, variable.shape, variable.columns or own, variable.more, items)

    def change(self, now: Look) -> str:
        """Return how the variable looks now in words, "" if it looks the same."""
        return next(_changes(self, now), "")


def _changes(was: Look, now: Look) -> Iterator[str]:
    if was.kind != now.kind:
        yield f"{was.kind} → {now.kind}"
    if was.shape != now.shape:
        yield f"{_describe_shape(was)} → {_describe_shape(now)}"
    if was.items != now.items:
        yield f"{was.items} → {now.items}"
    before, after = _dtypes(was), _dtypes(now)
    for label in dict.fromkeys((*before, *after)):
        one, other = before.get(label, "no column"), after.get(label, "no column")
        if one != other:
            yield f"{f'{label}: ' if label else ''}{one} → {other}"
    if ([*before], was.more) != ([*after], now.more):
        yield "other columns"


def _dtypes(look: Look) -> dict[str, str]:
    return {label: _TEXT_DTYPE if dtype in _TEXT_DTYPES else dtype for label, dtype in look.dtypes}


def _describe_shape(look: Look) -> str:
    return "×".join(map(str, look.shape)) or "a scalar"


class Mention(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user pointed a run at: an `@name` of the prompt, or a file of `--attach`.

    `text`: as it is written, "" for an attached file. `name`: of the variable, the path of the
    file, or the id of the cell ("": it has none). `digest`: of the file, or of the cell's source.
    The field names are those of the record.
    """

    text: str
    kind: Literal["variable", "file", "cell"]
    name: str
    digest: str = ""

    @classmethod
    def read_all(cls, run: Sequence[Event]) -> list[Mention]:
        """Return the mentions that a record names; what does not have their form is left out."""
        event = find_context(run)
        payload = event.payload if event is not None else None
        listed = payload.get("mentions") if isinstance(payload, Mapping) else None
        return list(cls._convert_all(listed[:MENTIONS])) if isinstance(listed, list | tuple) else []

    @classmethod
    def _convert_all(cls, listed: Sequence[Any]) -> Iterator[Mention]:
        for value in listed:
            with suppress(msgspec.ValidationError, RecursionError):
                yield msgspec.convert(value, cls)


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What one run sends beside its prompt.

    `system`: a line for the system message, `about_tools`: one about tools of the run. `text`: what
    stands before the prompt. `described`: the variables that it can name. `cells`: how many cells
    the text shows. `mentions`: what the user pointed it at. `changed`: why a record was not played,
    in words.
    """

    MODES: ClassVar[tuple[Mode, ...]] = get_args(Mode)

    mode: Mode = "none"
    system: str = ""
    about_tools: str = ""
    text: str = ""
    described: Mapping[str, Described] = {}
    cells: int = 0
    mentions: tuple[Mention, ...] = ()
    changed: tuple[str, ...] = ()

    def system_text(self, *, tools: bool = True) -> str:
        """Return the lines for the system message of a request, with `tools` or without."""
        return " ".join(filter(None, (self.system, self.about_tools if tools else "")))

    @property
    def tokens(self) -> int:
        """About how many tokens the text costs."""
        return sum(map(count_tokens, self.text.splitlines()))

    def fitted(self, size: int) -> Context:
        """Return the context with `text` cut, at a line, to its part of `size` tokens.

        `size`: the context of the model (0: unknown, nothing is cut).
        """
        limit = size // _CONTEXT_PART
        if not limit or self.tokens <= limit:
            return self
        lines = self.text.splitlines()
        shown: list[str] = []
        left = limit - count_tokens(_count_left_out(len(lines)))
        for line in lines:
            left -= count_tokens(line)
            if left < 0:
                break
            shown.append(line)
        more = _count_left_out(len(lines) - len(shown))
        return msgspec.structs.replace(self, text="\n".join([*shown, more]))

    def prepend_to(self, run: Sequence[Event]) -> list[Event]:
        """Return the events of a run with the text in front of its prompt."""
        at = next((n for n, e in enumerate(run) if isinstance(e, User) and not e.span), -1)
        sent = list(run)
        if self.text and at >= 0:
            user: Any = run[at]
            sent[at] = msgspec.structs.replace(user, content=f"{self.text}\n\n{user.content}")
        return sent

    def event(self, redaction: Redaction) -> State | None:
        """Return the event that records what was sent, None if nothing was."""
        if not (self.text or self.changed):
            return None
        payload: dict[str, Any] = {
            "mode": self.mode,
            "text": self.text,
            "tokens": self.tokens,
            "variables": {n: msgspec.to_builtins(Look.of(d)) for n, d in self.described.items()},
        }
        payload |= {"cells": self.cells} if self.cells else {}
        payload |= {"mentions": msgspec.to_builtins(self.mentions)} if self.mentions else {}
        payload |= {"changed": list(self.changed)} if self.changed else {}
        return State(kind=KIND, payload=redaction.value(payload))


def _count_left_out(count: int) -> str:
    return f"… {count:,} more line{'' if count == 1 else 's'}"


def find_context(run: Sequence[Event]) -> State | None:
    """Return the event that records the context of a run, None if there is none."""
    return next((e for e in run if isinstance(e, State) and e.kind == KIND and not e.span), None)


def replace_context(run: Sequence[Event], event: State | None) -> list[Event]:
    """Return the events of a run with `event` as its context, in place of its own (None: none)."""
    own = find_context(run)
    events = [e for e in run if e is not own]
    at = next((n for n, e in enumerate(events, 1) if isinstance(e, User) and not e.span), 0)
    if event is not None and at:
        events.insert(at, msgspec.structs.replace(event, ts=events[at - 1].ts))
    return events
