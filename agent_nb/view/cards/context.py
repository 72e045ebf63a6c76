"""What was sent about the notebook with the prompt: one quiet line that opens to that text."""

from __future__ import annotations

import re
from typing import Any

from ...wire import as_dict, as_list
from ..format import count_noun, format_count
from ..nodes import Fold, Node, Pre, Row, T
from ..state.cards import NoteCard
from ..values import bound_text
from ..visible import show_hidden
from .base import Context

LONGEST = 40_000  # characters of the text that are shown
# the line that describes a table; of code that looks like it, only spaces change
_TABLE = re.compile(r"^\S+: [\w.]+ \d[\d×]* \(.*\)$", re.M)
# a column's name with its colon, as in `(text: object, n: int64)`: after a bracket or a comma
_COLUMN = re.compile(r"(?:(?<=\()|(?<=, ))[^(),\n]+?: ")


def card(state: NoteCard, context: Context) -> Node | None:
    """Return the size of the context as a line, None if nothing was sent."""
    fields = as_dict(state.items[-1][1])
    text = fields.get("text")
    if not isinstance(text, str) or not text:
        return None
    summary = f"context: {', '.join(filter(None, _sizes(fields)))}"
    left = (T("◫ ", tone="muted", label="Sent with the prompt:"), T(summary, tone="muted"))
    body = (Pre(_keep_types_beside_columns(show_hidden(bound_text(text, LONGEST)))),)
    return Fold((Row(left),), body, accordion=True, title=summary)


def _keep_types_beside_columns(text: str) -> str:
    """Return the text with no line break between a table's column and the type of that column."""
    # a label ends with ": "; a no-break space takes the place of its space
    return _TABLE.sub(
        lambda line: _COLUMN.sub(lambda label: f"{label[0][:-1]}\u00a0", line[0]), text
    )


def _sizes(payload: dict[str, Any]) -> list[str]:
    """Return the size of each part in words, "" for a part that is missing or empty."""
    variables, cells, tokens = (payload.get(name) for name in ("variables", "cells", "tokens"))
    files = [m for m in as_list(payload.get("mentions")) if as_dict(m).get("kind") == "file"]
    return [
        count_noun(len(variables), "variable") if isinstance(variables, dict) and variables else "",
        count_noun(cells, "cell") if type(cells) is int and cells > 0 else "",
        count_noun(len(files), "file") if files else "",
        f"{format_count(tokens)} tokens" if type(tokens) is int else "",
    ]
