"""The view follows what the front end can do, unless an option says otherwise."""

import pytest

from agent_nb.errors import UsageError
from agent_nb.notebook.cell.frontend import (
    can_click_now,
    can_ever_click,
    choose_view_kind,
    is_headless,
    supports_widgets,
)
from agent_nb.notebook.identity import Cell

LAB = Cell(key="a", id="a", kernel=True, stdin=True)
RUNNER = Cell(key="a", id="a", kernel=True, runner_options={"headless": True})
NBCLIENT = Cell(key="a", kernel=True)
CONSOLE = Cell(key="a", kernel=True, stdin=True)
TERMINAL = Cell(key="a", stdin=True)


@pytest.mark.parametrize(
    ("cell", "kind"),
    [(LAB, "widgets"), (RUNNER, "html"), (NBCLIENT, "html"), (CONSOLE, "text"), (TERMINAL, "text")],
)
def test_each_front_end_gets_the_view_it_can_show(cell, kind):
    assert choose_view_kind("auto", cell) == kind
    assert choose_view_kind("widgets", cell) == "widgets"


def test_below_ipywidgets_8_the_view_is_html(monkeypatch):
    monkeypatch.setattr("agent_nb.notebook.cell.frontend.version", lambda _: "7.7.1")
    supports_widgets.cache_clear()
    assert [choose_view_kind("auto", c) for c in (LAB, RUNNER, CONSOLE)] == ["html", "html", "text"]
    with pytest.raises(UsageError, match="needs ipywidgets 8"):
        choose_view_kind("widgets", LAB)
    supports_widgets.cache_clear()


def test_nobody_looks_on_in_a_runner():
    assert [is_headless(c) for c in (LAB, RUNNER, NBCLIENT, CONSOLE, TERMINAL)] == [
        False,
        True,
        True,
        False,
        False,
    ]


class Shell:
    """A kernel of some version, with or without subshells."""

    def __init__(self, subshells=()):
        thread = type(
            "T", (), {"manager": type("M", (), {"list_subshell": lambda self: list(subshells)})()}
        )()
        self.kernel = type("K", (), {"shell_channel_thread": thread})()


@pytest.mark.parametrize(
    ("version", "subshells", "live"),
    [
        ((7, 4, 0), (), True),
        ((7, 3, 0), (), False),
        ((7, 3, 0), ("s",), True),
        ((7, 0, 1), ("s",), True),
        ((6, 31, 0), ("s",), False),
    ],
)
def test_clicks_are_live_where_the_kernel_hears_them(monkeypatch, version, subshells, live):
    monkeypatch.setattr("ipykernel.version_info", version)
    assert can_click_now(Shell(subshells), LAB) is live


def test_no_click_can_come_where_nobody_looks_on():
    assert not any(can_click_now(Shell(("s",)), c) for c in (RUNNER, NBCLIENT, TERMINAL))


def test_a_kernel_without_the_names_looked_for_has_no_clicks(monkeypatch):
    monkeypatch.setattr("ipykernel.version_info", (7, 3, 0))
    assert not can_click_now(object(), LAB)


def test_before_the_first_widget_of_a_kernel_clicks_may_come_later(monkeypatch):
    monkeypatch.setattr("ipykernel.version_info", (7, 3, 0))
    assert can_ever_click(LAB)
    monkeypatch.setattr("ipykernel.version_info", (6, 31, 0))
    assert not can_ever_click(LAB)
