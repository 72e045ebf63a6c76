"""The rows and requests per minute of a map, split over workers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.rows.map.cluster.shares import WINDOW, Share, Shares


def shares(rows, rpm=0, *, workers="abc", now=0.0):
    made = Shares(rows, rpm)
    made.update(workers, now)
    return made


def table(made, workers="abcdef"):
    return {name: (made[name].rows, made[name].rpm) for name in workers if name in made}


def test_rows_and_requests_are_split_evenly_and_the_first_get_what_is_left():
    assert table(shares(11, 100)) == {"a": (4, 34), "b": (4, 33), "c": (3, 33)}


def test_no_limit_per_minute_stays_no_limit():
    assert shares(3)["a"] == Share(1, 0)


def test_rows_go_to_the_worker_with_most_free_places_within_its_share():
    made = shares(4, workers="ab")
    assert sorted(made.begin_row() for _ in range(4)) == ["a", "a", "b", "b"]
    made.end_row("b")
    assert made.begin_row() == "b"


def test_a_worker_without_a_share_gets_no_rows():
    made = shares(2)
    assert {made.begin_row() for _ in range(2)} == {"a", "b"}
    made = shares(9, 2)
    assert {made.begin_row() for _ in range(9)} == {"a", "b"}


def test_without_workers_no_row_may_be_asked():
    assert shares(4, workers="").begin_row() == ""


def test_workers_that_stay_keep_their_order_and_changes_are_counted():
    made = shares(3)
    revision = made.revision
    made.update("cab", 1.0)
    assert made.revision == revision
    made.update("da", 2.0)
    assert table(made) == {"a": (2, 0), "d": (1, 0)}
    assert made.revision == revision + 1


def test_a_worker_in_place_of_a_lost_one_waits_until_requests_are_old():
    made = shares(4, 60, workers="ab")
    made.update("ac", 10.0)
    assert table(made) == {"a": (4, 30), "c": (0, 0)}
    made.update("ac", 10.0 + WINDOW - 0.1)
    assert made["c"].rpm == 0
    made.update("ac", 10.0 + WINDOW)
    assert table(made) == {"a": (2, 30), "c": (2, 30)}


def test_no_worker_gets_more_rows_than_its_share():
    made = shares(4, 60, workers="a")
    assert [made.begin_row() for _ in range(4)] == ["a"] * 4
    made.update("ab", 1.0)
    made.update("ab", 1.0 + WINDOW)
    made.end_row("a")
    assert [made.begin_row() for _ in range(3)] == ["b", "b", ""]


@given(
    st.integers(1, 90),
    st.lists(st.tuples(st.sets(st.sampled_from("abcde")), st.floats(0, 40)), max_size=12),
)
def test_in_no_window_do_the_shares_exceed_the_limit(rpm, steps):
    made, now, history = Shares(10, rpm), 0.0, []
    for workers, later in steps:
        now += later
        made.update(sorted(workers), now)
        history.append((now, {name: made[name].rpm for name in workers}))
        # whoever had a share within the last window may have used it whole
        most = {}
        for n, (_, held) in enumerate(history):
            ended = history[n + 1][0] if n + 1 < len(history) else now
            if now - ended < WINDOW:
                for name, rate in held.items():
                    most[name] = max(most.get(name, 0), rate)
        assert sum(most.values()) <= rpm


@pytest.mark.parametrize("count", [1, 2, 7])
def test_all_rows_are_given_out(count):
    made = shares(50, workers="abcdefg"[:count])
    assert all(made.begin_row() for _ in range(50))
