"""The columns of DataFrames: where their values come from, and which texts they can hold.

One table of columns serves frames of events, calls, turns and runs, and their documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

Kind = Literal[
    "category", "text", "json", "count", "int", "float", "bool", "time", "duration", "object"
]
"""category, text, int, float and bool as named, and:

json      text of a nested value
count     an integer that is always present; an `int` may be missing and is then a float in a frame
time      UTC, from epoch seconds
duration  from seconds
object    the value itself
"""
Getter = str | Callable[[Any], Any]  # the name of an attribute, or a function of the row
Table = Literal["events", "calls", "turns", "runs"]  # what each row is made of


class Column(msgspec.Struct, frozen=True):
    """One column.

    `of` maps a row type to an attribute name or a function of the row; `Event` stands for every
    type of event. `derived`: the frame computes the value, and `of` is empty. `doc` describes the
    column to users.
    """

    name: str
    kind: Kind
    of: Mapping[type, Getter] = {}
    table: Table = "events"
    derived: bool = False
    doc: str = ""


def replace_half_characters(text: str) -> str:
    """Return a text with `?` for lone surrogates, which a record may hold and a column cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
