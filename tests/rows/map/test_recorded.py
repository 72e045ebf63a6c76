"""The records of rows in the log of a map."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.events import State
from agent_nb.record.inner_records import InnerRecords

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner),
    max_leaves=8,
)
first = st.dictionaries(st.sampled_from("abc"), values, max_size=3)


def read(payload):
    return InnerRecords.of_log([State(kind=InnerRecords.KIND, payload=payload)])


@given(st.lists(first, max_size=4))
def test_folded_records_are_read_as_they_were(firsts):
    made = {f"k{n}": {"id": f"r{n}", "events": [one, {"x": n}]} for n, one in enumerate(firsts)}
    again = read(InnerRecords(made).to_payload())
    assert again == made


def test_records_without_events_stay_as_they_are():
    made = {"k": {"id": "r", "events": []}, "l": {"id": "s"}, "m": {"events": [{"ts": 1}]}}
    assert read(InnerRecords(made).to_payload()) == made


def test_what_all_rows_have_in_common_stands_once():
    settings = {"model": "m", "schema": {"type": "object"}}
    made = {
        f"k{n}": {"events": [{"ts": n, "settings": {**settings, "inputs": {"prompt": str(n)}}}]}
        for n in range(3)
    }
    payload = InnerRecords(made).to_payload()
    assert payload["shared"] == {"settings": {**settings, "inputs": {}}}
    assert payload["rows"]["k1"]["events"] == [{"ts": 1, "settings": {"inputs": {"prompt": "1"}}}]


def test_a_payload_of_a_strange_shape_has_no_records():
    for payload in (None, [], {"rows": []}, {"rows": {"k": 1}}, {"shared": {}}):
        assert read(payload) == {}
    odd = {"shared": [], "rows": {"k": {"events": "x"}, "l": {"events": [3]}}}
    assert read(odd) == odd["rows"]


@pytest.mark.parametrize(
    "words", ["x" * InnerRecords.LIMIT, math.inf, "[" * 3], ids=["long", "inf", "short"]
)
def test_what_would_unfold_to_far_more_than_a_map_records_has_no_rows(words):
    rows = {f"k{n}": {"id": "r", "events": [{"type": "run_start"}]} for n in range(5)}
    found = read({"shared": {"settings": {"a": words}}, "rows": rows})
    assert len(found) == (5 if words == "[[[" else 0)


def test_rows_of_a_run_that_was_followed_or_of_a_sub_agent_do_not_count():
    payload = {"rows": {"k": {"id": "r", "events": []}}}
    assert InnerRecords.of_log([State(kind=InnerRecords.KIND, payload=payload)])
    assert (
        InnerRecords.of_log([State(kind=InnerRecords.KIND, payload=payload, origin="imported")])
        == {}
    )
    assert InnerRecords.of_log([State(kind=InnerRecords.KIND, payload=payload, span="sub")]) == {}


def test_the_copies_of_several_states_count_together():
    shared = {"type": "run_start", "settings": {"system": "s" * InnerRecords.LIMIT}}
    states = [
        State(
            kind=InnerRecords.KIND, payload={"shared": shared, "rows": {str(n): {"events": [{}]}}}
        )
        for n in range(9)
    ]
    assert len(InnerRecords.of_log(states)) == 3
