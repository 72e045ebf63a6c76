"""The pictures of a result: what counts as one, and how it is kept."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.pictures import attached, png

from agent_nb.tools.base import Pictured, Update
from agent_nb.tools.figures import Figures
from agent_nb.tools.pictures import MOST, NO_PICTURE, replace_pictures
from agent_nb.tools.results import convert_result
from agent_nb.tools.running_call import convert_update
from agent_nb.wire import Attachment

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


class Rich:
    """An object that makes its own mime bundle."""

    def _repr_mimebundle_(self, **_: Any) -> Any:
        return {"text/plain": "Rich", "image/png": PICTURE}, {}


SOURCES = (
    PICTURE,
    bytearray(PICTURE),
    attached(PICTURE),
    Drawn(),
    Drawn(attached(PICTURE)["data"]),
    Figure(),
    Rich(),
)
NAMES = ("bytes", "bytearray", "attachment", "image", "base64", "figure", "bundle")


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_a_picture_that_a_tool_returns_is_an_attachment_and_words(source: Any) -> None:
    if isinstance(source, dict):
        source = {"image/png": source["data"]}
    outcome = convert_result(source)
    assert (outcome.content, outcome.display) == ("[figure 1: 4×3 pixels]", None)
    assert outcome.attachments == (attached(PICTURE),)


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_a_tool_returns_pictures_beside_its_content(source: Any) -> None:
    outcome = convert_result(Pictured({"rows": 3}, [source]))
    assert (outcome.content, outcome.attachments) == ({"rows": 3}, (attached(PICTURE),))


@pytest.mark.parametrize(
    "source", [b"GIF7", {"data": "no base64!"}, {"data": 1}, {}, object(), Drawn(b"text"), None]
)
def test_what_is_no_picture_is_named_in_the_text(source: Any) -> None:
    outcome = convert_result(Pictured("looked", [source, PICTURE]))
    assert outcome.content == f"looked\n{NO_PICTURE}"
    assert outcome.attachments == (attached(PICTURE),)


def test_pictures_that_cannot_be_listed_do_not_cost_the_result() -> None:
    assert convert_result(Pictured("looked", 3)).content == f"looked\n{NO_PICTURE}"  # type: ignore[arg-type]


def test_a_picture_loses_the_text_in_it() -> None:
    (kept,) = convert_result(Pictured("", [png(text=b"sk-secret")])).attachments
    assert kept == attached(PICTURE)


def test_pictures_inside_lists_and_objects_leave_words_there() -> None:
    second = png(9, 9)
    outcome = convert_result({"title": "T", "plots": [Figure(), Drawn(second)], "n": 2})
    assert outcome.content == {
        "title": "T",
        "plots": ["[figure 1: 4×3 pixels]", "[figure 2: 9×9 pixels]"],
        "n": 2,
    }
    assert outcome.attachments == (attached(PICTURE), attached(second))


def test_a_value_without_pictures_stays_the_same_object() -> None:
    value = {"rows": [[1, 2], (3, b"bytes")]}
    assert replace_pictures(value, Figures().add) is value


def test_a_result_keeps_so_many_pictures_and_says_which_it_does_not_keep() -> None:
    outcome = convert_result([png(n, 1) for n in range(1, MOST + 3)])
    assert len(outcome.attachments) == MOST
    assert outcome.content[-1] == (
        f"[figure {MOST + 1}: {MOST + 2}×1 pixels; not kept, a result has at most {MOST}]"
    )


def test_a_very_large_picture_is_kept_smaller() -> None:
    (kept,) = convert_result(png(1800, 1200, noise=1)).attachments
    assert len(kept["data"]) < len(png(1800, 1200, noise=1))
    assert kept["media_type"] == "image/jpeg"


def test_what_a_tool_renders_for_people_is_not_sent_to_the_model() -> None:
    outcome = convert_result("text", render=lambda _: {"image/png": PICTURE})
    assert outcome.attachments == ()
    assert outcome.display is not None
    assert outcome.display["image/png"] == attached(PICTURE)["data"]


@pytest.mark.parametrize("broken", [Drawn(RuntimeError()), Drawn(3), Drawn(None), Drawn(("x",))])
def test_an_object_that_cannot_be_drawn_is_text(broken: Any) -> None:
    outcome = convert_result(broken)
    assert outcome.attachments == ()
    assert "Drawn object" in outcome.content


def test_a_display_with_a_name_is_replaced_in_place() -> None:
    figures = Figures()
    first, second, new = attached(png(1, 1)), attached(png(2, 2)), attached(png(3, 3))
    assert figures.add(first, "a") == "[figure 1: 1×1 pixels]"
    assert figures.add(second) == "[figure 2: 2×2 pixels]"
    assert figures.add(new, "a") == "[figure 1: 3×3 pixels]"
    assert figures.all == (new, second)
    assert figures.add(second) == "[figure 2: 2×2 pixels]"
    assert figures.all == (new, second)
    figures.clear()
    assert figures.all == ()


@pytest.mark.parametrize("wrong", [(1,), ("x", {}), "picture", (0, b"data"), [0, {}, 1]])
def test_an_update_whose_picture_is_none_has_no_picture(wrong: Any) -> None:
    assert convert_update(Update(text="x", picture=wrong)) == Update(text="x")


def test_a_figure_that_is_no_chart_has_no_note_below_it():
    figures = Figures()
    figures.add_display({"text/plain": "<Figure>", "image/png": attached(PICTURE)["data"]})
    (kept,) = figures.all
    assert not kept.get(Attachment.NOTE)
