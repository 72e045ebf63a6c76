"""The views of a live page, as front ends count them: what is lost, and what is done about it."""

import pytest

from agent_nb.view.views import GONE, OPENING, SHOWN, Views


def acts(views, *times):
    return [views.act(now) for now in times]


@pytest.fixture
def seen():
    views = Views()
    views.count(1, 0.0)
    return views


def test_a_page_whose_views_were_never_counted_is_never_lost():
    views = Views()
    views.opened(0.0)
    assert acts(views, 1.0, OPENING + 10, 1e6) == ["", "", ""]
    assert (views.counted, views.lost) == (False, False)


def test_a_first_count_of_none_says_nothing():
    views = Views()
    views.count(0, 0.0)
    assert acts(views, GONE + 1, 1e6) == ["", ""]
    assert not views.lost


def test_a_page_that_is_seen_is_left_alone(seen):
    assert acts(seen, 1.0, 1e6) == ["", ""]
    assert (seen.counted, seen.lost) == (True, False)


def test_a_moved_cell_is_no_loss(seen):
    seen.count(0, 10.0)
    assert seen.act(10.1) == ""
    seen.count(1, 10.2)
    assert acts(seen, 10 + GONE, 1e6) == ["", ""]
    assert not seen.lost


def test_a_moved_cell_and_an_opened_page_are_shown_again_by_the_front_end(seen):
    assert not seen.shown_again
    seen.count(0, 10.0)
    assert not seen.shown_again
    seen.count(1, 10.2)
    assert seen.shown_again
    reloaded = Views()
    reloaded.count(1, 0.0)
    reloaded.opened(1.0)
    assert reloaded.shown_again


def test_a_page_that_was_displayed_anew_is_not_shown_again(seen):
    seen.count(0, 10.0)
    assert seen.act(10 + GONE) == "display"
    seen.count(1, 11 + GONE)
    assert not seen.shown_again


def test_a_page_without_views_is_displayed_once_more_and_then_lost(seen):
    seen.count(0, 10.0)
    times = (10 + GONE - 0.1, 10 + GONE, 10 + GONE + SHOWN - 0.1)
    assert acts(seen, *times) == ["", "display", ""]
    assert not seen.lost
    assert acts(seen, 10 + GONE + SHOWN, 1e6) == ["", ""]
    assert seen.lost


def test_a_page_that_is_displayed_once_more_and_counted_is_seen(seen):
    seen.count(0, 10.0)
    assert seen.act(10 + GONE) == "display"
    seen.count(1, 11 + GONE)
    assert acts(seen, 1e6) == [""]
    assert not seen.lost
    seen.count(0, 2e6)
    assert seen.act(2e6 + GONE) == "display"


def test_one_of_two_views_that_goes_is_no_loss(seen):
    seen.count(2, 1.0)
    seen.count(1, 2.0)
    assert acts(seen, 1e6) == [""]
    seen.count(0, 2e6)
    assert seen.act(2e6 + GONE) == "display"


def test_a_page_that_opens_has_long_to_show_the_card(seen):
    seen.opened(10.0)
    assert acts(seen, 10 + GONE + SHOWN, 9 + OPENING) == ["", ""]
    seen.count(1, 9.5 + OPENING)
    assert acts(seen, 10 + OPENING, 1e6) == ["", ""]
    assert not seen.lost


def test_the_view_of_a_page_that_replaced_another_can_be_lost(seen):
    seen.opened(10.0)
    seen.count(1, 15.0)
    seen.count(0, 20.0)
    assert seen.act(20 + GONE) == "display"


def test_a_page_that_opens_without_the_card_is_lost_in_the_end(seen):
    seen.opened(10.0)
    now = 10 + OPENING
    assert acts(seen, now, now + SHOWN, now + 2 * SHOWN) == ["redraw", "display", ""]
    assert seen.lost


@pytest.mark.parametrize("counts", [(1,), (-1, 0)], ids=["drawn first", "removed first"])
def test_a_page_that_was_open_before_is_seen_when_it_is_drawn_again(seen, counts):
    seen.opened(10.0)
    assert seen.act(10 + OPENING) == "redraw"
    for count in counts:
        seen.count(count, 10.1 + OPENING)
    assert acts(seen, 1e6, 2e6) == ["", ""]
    assert not seen.lost


def test_a_page_that_was_open_before_loses_its_view_below_zero(seen):
    seen.opened(10.0)
    seen.count(-1, 12.0)
    assert acts(seen, 12 + GONE, 12 + GONE + SHOWN) == ["display", ""]
    assert seen.lost


def test_a_lost_page_is_found_again_when_a_page_opens_with_it(seen):
    seen.count(0, 10.0)
    assert acts(seen, 10 + GONE, 10 + GONE + SHOWN) == ["display", ""]
    assert seen.lost
    seen.opened(50.0)
    assert not seen.lost
    seen.count(1, 51.0)
    assert acts(seen, 1e6) == [""]
    assert not seen.lost
