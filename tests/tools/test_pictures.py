"""The pictures of a result: what counts as one, and how it is kept."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.pictures import attached, png

from agent_nb.tools.base import Pictured
from agent_nb.tools.pictures import NO_PICTURE
from agent_nb.tools.results import success

PICTURE = png()


class Drawn:
    """An object that draws itself, as IPython asks it to."""

    def __init__(self, data: Any = PICTURE) -> None:
        self.data = data

    def _repr_png_(self) -> Any:
        return self.data


class Figure:
    def savefig(self, target: Any, **_: Any) -> None:
        target.write(PICTURE)


@pytest.mark.parametrize(
    "source",
    [
        PICTURE,
        bytearray(PICTURE),
        attached(PICTURE),
        attached(PICTURE, "image/jpeg"),
        Drawn(),
        Figure(),
    ],
    ids=["bytes", "bytearray", "attachment", "wrong name", "image", "figure"],
)
def test_a_tool_returns_pictures_beside_its_content(source: Any) -> None:
    outcome = success(Pictured({"rows": 3}, [source]))
    assert (outcome.content, outcome.attachments) == ({"rows": 3}, (attached(PICTURE),))


@pytest.mark.parametrize(
    "source", [b"GIF7", {"data": "no base64!"}, {"data": 1}, {}, object(), Drawn(b"text"), None]
)
def test_what_is_no_picture_is_named_in_the_text(source: Any) -> None:
    outcome = success(Pictured("looked", [source, PICTURE]))
    assert outcome.content == f"looked\n{NO_PICTURE}"
    assert outcome.attachments == (attached(PICTURE),)


def test_pictures_that_cannot_be_listed_do_not_cost_the_result() -> None:
    assert success(Pictured("looked", 3)).content == f"looked\n{NO_PICTURE}"  # type: ignore[arg-type]


def test_a_picture_loses_the_text_in_it() -> None:
    (kept,) = success(Pictured("", [png(text=b"sk-secret")])).attachments
    assert kept == attached(PICTURE)
