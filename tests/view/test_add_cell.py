"""The card of an offered cell, and its button."""

import ipywidgets as w
import pytest

from agent_nb import events as e
from agent_nb.view.bundle import make_bundle
from agent_nb.view.painters import WidgetPainter
from agent_nb.view.state.fold import RunView

CODE = "df.groupby('town').sum()\n# </pre><script>alert(1)</script>"


def offered(begun, *codes, status="ok"):
    for number, code in enumerate(codes, 1):
        begun.tool(
            f"k{number}",
            "add_cell",
            {"code": code, "why": "By <b>town</b>."},
            status=status,
            content=f"Offered as cell {number}.",
            display={"text/plain": f"%agent cell {number} inserts it"},
        )
    return begun.seen


@pytest.fixture
def chosen():
    return []


@pytest.fixture
def painter(chosen):
    painter = WidgetPainter({"insert": chosen.append}, "collapse", lambda: True)
    yield painter
    painter.close()


def buttons(painter):
    def below(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from below(child)

    found = [b for b in below(painter.board.root) if isinstance(b, w.Button)]
    return [b for b in found if b.description not in {"■ Stop", "stopping…"}]


def test_the_page_shows_the_whole_code_escaped_and_one_click_selects_it(begun):
    page = make_bundle(offered(begun, CODE))
    assert "user-select:all" in page["text/html"]
    assert "<script>" not in page["text/html"]
    assert "<b>town" not in page["text/html"]
    assert "%agent cell 1 inserts it" in page["text/html"]
    assert CODE in page["text/plain"].replace("    ", "")


def test_a_refused_offer_is_an_ordinary_failed_call(begun):
    page = make_bundle(offered(begun, " ", status="error"))["text/html"]
    assert "A cell for you" not in page
    assert "✕" in page


def test_the_button_chooses_the_cell_and_a_second_press_withdraws_it(painter, begun, chosen):
    view = RunView().extend(offered(begun, "a = 1"))
    painter.paint(view, 0.0)
    (button,) = buttons(painter)
    button.click()
    painter.paint(view, 0.0)
    assert button.description == "✓ Inserted when the run ends"
    button.click()
    painter.paint(view, 0.0)
    assert button.description == "Insert below"
    assert chosen == ["a = 1", ""]


def test_of_two_cells_only_the_last_pressed_one_is_chosen(painter, begun, chosen):
    view = RunView().extend(offered(begun, "a = 1", "b = 2"))
    painter.paint(view, 0.0)
    for button in buttons(painter):
        button.click()
        painter.paint(view, 0.0)
    assert [b.description for b in buttons(painter)] == [
        "Insert below",
        "✓ Inserted when the run ends",
    ]
    assert chosen == ["a = 1", "b = 2"]


def test_a_replay_has_no_button(painter, begun):
    painter.paint(RunView(recorded=True).extend(offered(begun, "a = 1")), 0.0)
    assert buttons(painter) == []


def test_a_view_that_cannot_insert_has_no_button(begun):
    painter = WidgetPainter({}, "collapse", lambda: True)
    painter.paint(RunView().extend(offered(begun, "a = 1")), 0.0)
    assert buttons(painter) == []
    painter.close()


@pytest.mark.parametrize("args", [{}, {"code": 7}, {"code": "x", "why": ["no"]}, {"code": ""}])
def test_a_forged_offer_is_drawn(begun, args):
    begun.tool("k", "add_cell", args, content={"odd": 1})
    begun(e.End(status="ok"))
    assert make_bundle(begun.seen)["text/plain"]
