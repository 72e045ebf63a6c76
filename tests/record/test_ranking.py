"""The user's own records come before others, whatever times those name; which records are kept."""

import math
import time

import pytest

from agent_nb.record.ranking import TOLERANCE, CellRecords, read_start_time
from agent_nb.record.signing import UserKey

KEY, OTHER = UserKey(b"this user's secret"), UserKey(b"another user's")
NO_TIME = [
    None,
    "9e9",
    "",
    True,
    [9e9],
    {"a": 1},
    math.nan,
    math.inf,
    -math.inf,
    -1,
    -1e300,
    1e300,
    10**400,
    -(10**400),
]


def made(name, at=1.0, key=b""):
    return UserKey(key).sign(
        {"id": name, "started": at, "events": [{"type": "end", "status": "ok"}]}
    )


def names(records):
    return [r["id"] for r in records]


@pytest.mark.parametrize("value", NO_TIME)
def test_an_invalid_start_counts_as_the_oldest(value):
    assert read_start_time({"started": value}) == 0.0
    assert read_start_time({}) == 0.0
    assert names(
        CellRecords([{"id": "odd", "started": value}, {"id": "old", "started": 1.0}]).newest_first()
    ) == [
        "old",
        "odd",
    ]


def test_so_does_the_future_unless_clocks_may_differ_so_much():
    now = time.time()
    assert read_start_time({"started": now + TOLERANCE * 2}) == 0.0
    assert read_start_time({"started": now + TOLERANCE / 2}) > now
    assert names(
        CellRecords([made("future", 9e9), made("now", now), made("old", 1)]).newest_first()
    ) == [
        "now",
        "old",
        "future",
    ]
    assert names(
        CellRecords([made("future", 9e9), made("now", now), made("later", 9.5e9)]).oldest_first()
    ) == [
        "future",
        "later",
        "now",
    ]


def test_the_users_own_come_first_and_each_class_by_its_start():
    records = [
        made("forged", time.time()),
        made("a", 1.0, KEY),
        made("other", 5.0, OTHER),
        made("b", 2.0, KEY),
    ]
    assert names(CellRecords(records).rank(KEY)) == ["b", "a", "forged", "other"]
    assert names(CellRecords(records).rank(UserKey())) == ["forged", "other", "b", "a"]


def test_a_record_of_the_user_that_was_changed_is_not_the_users():
    own = made("a", 2.0, KEY)
    for change in (
        {"id": "b"},
        {"hash": "sha256:0"},
        {"hash": None},
        {"signature": "x"},
        {"signature": "ü"},
        {"signature": 7},
    ):
        assert not KEY.owns({**own, **change})
        assert CellRecords([{**own, **change}, own]).rank(KEY)[0] == own


def test_a_record_with_a_swapped_payload_is_not_the_users():
    key = "0" * 64
    own = KEY.sign(
        {
            "id": "a",
            "started": 1.0,
            "events": [{"type": "result", "content": {"$payload": key}}],
            "payloads": {key: "x"},
        }
    )
    assert not KEY.owns(own)


def test_an_empty_key_owns_nothing():
    assert not UserKey().owns(made("a", 1.0, KEY))


@pytest.mark.parametrize(
    ("own", "others", "stay"),
    [
        ([1, 2, 3], [4, 5, 6], ["o6", "m3", "m2", "m1"]),
        ([1, 2, 3, 4], [], ["m4", "m3", "m2"]),
        ([], [1, 2, 3, 4], ["o4", "o3", "o2"]),
        ([9], [1, 2, 3], ["m9", "o3", "o2"]),
        ([1, 2], [3, 4], ["o4", "m2", "m1"]),
        ([7, 8], [3], ["m8", "m7", "o3"]),
    ],
)
def test_others_never_push_out_the_users_own_and_their_newest_finds_room(own, others, stay):
    records = [*(made(f"m{n}", n, KEY) for n in own), *(made(f"o{n}", n) for n in others)]
    assert names(CellRecords(records).select_kept(KEY)) == stay
    assert names(CellRecords(records[::-1]).select_kept(KEY)) == stay
