"""The user's own records come before others, whatever times those name; which records are kept."""

import math
import time

import pytest

from agent_nb.record.ranking import TOLERANCE, kept, newest, oldest, ranked, started
from agent_nb.record.signing import mine, sign

KEY, OTHER = b"this user's secret", b"somebody else's"
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
    return sign({"id": name, "started": at, "events": [{"type": "end", "status": "ok"}]}, key)


def names(records):
    return [r["id"] for r in records]


@pytest.mark.parametrize("value", NO_TIME)
def test_an_invalid_start_counts_as_the_oldest(value):
    assert started({"started": value}) == 0.0
    assert started({}) == 0.0
    assert names(newest([{"id": "odd", "started": value}, {"id": "old", "started": 1.0}])) == [
        "old",
        "odd",
    ]


def test_so_does_the_future_unless_clocks_may_differ_so_much():
    now = time.time()
    assert started({"started": now + TOLERANCE * 2}) == 0.0
    assert started({"started": now + TOLERANCE / 2}) > now
    assert names(newest([made("future", 9e9), made("now", now), made("old", 1)])) == [
        "now",
        "old",
        "future",
    ]
    assert names(oldest([made("future", 9e9), made("now", now), made("later", 9.5e9)])) == [
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
    assert names(ranked(records, KEY)) == ["b", "a", "forged", "other"]
    assert names(ranked(records, b"")) == ["forged", "other", "b", "a"]


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
        assert not mine({**own, **change}, KEY)
        assert ranked([{**own, **change}, own], KEY)[0] == own


def test_a_record_with_a_swapped_payload_is_not_the_users():
    key = "0" * 64
    own = sign(
        {
            "id": "a",
            "started": 1.0,
            "events": [{"type": "result", "content": {"$payload": key}}],
            "payloads": {key: "x"},
        },
        KEY,
    )
    assert not mine(own, KEY)


def test_an_empty_key_owns_nothing():
    assert not mine(made("a", 1.0, KEY), b"")


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
    assert names(kept(records, KEY)) == stay
    assert names(kept(records[::-1], KEY)) == stay
