"""Values of subclasses become built-in ones at the doors of the product."""

from __future__ import annotations

import enum
from collections import OrderedDict

import numpy as np
import pytest
from markupsafe import Markup

from agent_nb.wire.plain_values import plain_value


class Label(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    TWO = 2


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.str_("x"), "x"),
        (Markup("<b>"), "<b>"),
        (Text("x"), "x"),
        (Label.A, "a"),
        (Number.TWO, 2),
        (np.int64(2), 2),
        (np.uint8(2), 2),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.bool_(True), True),
        (np.array(3), 3),
        (True, True),
        (None, None),
        (OrderedDict({Label.A: [Number.TWO]}), {"a": [2]}),
        ((np.str_("x"), [Markup("y")]), ("x", ["y"])),
    ],
)
def test_a_value_of_a_subclass_becomes_the_built_in_one(value, expected) -> None:
    found = plain_value(value)
    assert (found, type(found)) == (expected, type(expected))
    assert "np." not in repr(found)
    assert "Markup" not in repr(found)


def test_other_values_stay_as_they_are() -> None:
    for value in (object(), np.arange(3), np.datetime64("2026-01-01"), {1, 2}, b"x", print):
        assert plain_value(value) is value
