"""The store of rows: what it keeps, whom a row belongs to, and who may ask it."""

import json
import sqlite3
from pathlib import Path

import pytest
from helpers.sample_runs import make_log

from agent_nb.errors import UsageError
from agent_nb.events import Result
from agent_nb.record.packing import Payloads
from agent_nb.record.record import events_of, run_record
from agent_nb.record.signing import UserKey
from agent_nb.rows.store.row_claims import CLOCK_SKEW, LONGEST_CLAIM
from agent_nb.rows.store.row_store import RowStore

KEY, OTHER = UserKey(b"the user's secret"), UserKey(b"a stranger's secret")


class Clock:
    """A wall clock that a test sets."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


def record(answer="yes", run="", **options):
    """Return the record of a run that ended ok."""
    made = run_record(make_log(**options))
    return {**made, "id": run or made["id"], "conversation": answer}


def failed():
    return {**record(), "status": "error"}


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.sqlite"


@pytest.fixture
def opened(path, clock):
    """Return the maker of stores of one file, all closed at the end."""
    stores = []

    def make(owner="a", key=KEY, map_id="m", title="", **options):
        options |= {"owner": owner, "title": title, "now": clock}
        stores.append(RowStore(path, map_id, key, **options))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def change(path, statement, *values):
    """Change the file as a stranger would."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def test_a_row_comes_back_with_its_record_and_its_signature(opened):
    store, made = opened(), record()
    store.put([("k", made, 1)])
    (found,) = store.find(["k", "other"]).values()
    assert found.mine
    assert found.final
    assert found.attempts == 1
    assert events_of(found.record) == events_of(made)
    assert KEY.owns(found.record)


def test_rows_stand_in_the_file_that_another_process_opens(opened):
    opened().put([("k", record(), 1)])
    assert opened("b").find(["k"])["k"].mine


def test_a_row_of_another_user_is_not_the_user_s(opened):
    opened("stranger", OTHER).put([("k", record(), 1)])
    assert not opened().find(["k"])["k"].mine


def test_a_row_is_not_signed_without_a_key(opened):
    opened(key=UserKey()).put([("k", record(), 1)])
    assert not opened(key=UserKey()).find(["k"])["k"].mine


def test_a_changed_row_is_not_the_user_s(opened, path):
    opened().put([("k", record(), 1)])
    change(path, "UPDATE rows SET record = replace(record, '\"main\"', '\"fine\"')")
    change(path, "UPDATE rows SET record = replace(record, '\"yes\"', '\"nay\"')")
    assert not opened().find(["k"])["k"].mine


def test_the_answer_of_one_row_cannot_be_given_to_another(opened, path):
    opened().put([("k", record(), 1)])
    change(path, "UPDATE rows SET key = 'victim'")
    assert opened().find(["victim"]) == {}


def test_a_row_of_a_stranger_is_asked_and_replaced(opened):
    opened("stranger", OTHER).put([("k", record("theirs"), 1)])
    store = opened()
    assert store.claim(["k"], 60) == {"k"}
    store.put([("k", record("ours"), 1)])
    assert store.find(["k"])["k"].record["conversation"] == "ours"


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[]", b"7", b"[" * 100_000, "text", 7, None]
)
def test_a_record_that_is_not_one_does_not_exist(opened, path, content):
    opened().put([("k", record(), 1), ("good", record(), 1)])
    change(path, "UPDATE rows SET record = ? WHERE key = 'k'", content)
    assert set(opened().find(["k", "good"])) == {"good"}
    assert opened().claim(["k"], 60) == {"k"}


def test_text_that_is_not_utf_8_spoils_only_its_own_row(opened, path):
    opened().put([("k", record(), 1), ("good", record(), 1)])
    change(path, "UPDATE rows SET record = CAST(x'ff00fe' AS TEXT) WHERE key = 'k'")
    change(path, "UPDATE maps SET said = CAST(x'ff41' AS TEXT)")
    assert set(opened().find(["k", "good"])) == {"good"}
    assert [said for said, _ in opened().maps().values()] == ["\ufffdA"]


def test_a_record_beyond_the_bounds_does_not_exist(opened, path):
    opened().put([("k", record(), 1), ("good", record(), 1)])
    change(path, "UPDATE rows SET record = zeroblob(17000000) WHERE key = 'k'")
    assert set(opened().find(["k", "good"])) == {"good"}


def test_two_owners_never_hold_the_same_row(opened):
    a, b = opened("a"), opened("b")
    assert a.claim(["1", "2"], 60) == {"1", "2"}
    assert b.claim(["2", "3"], 60) == {"3"}


def test_an_owner_keeps_what_it_claims_again(opened):
    store = opened()
    store.claim(["k"], 60)
    assert store.claim(["k"], 60) == {"k"}
    store.put([("k", record(), 1)])
    assert store.find(["k"])["k"].attempts == 1


def test_a_lease_that_ran_out_is_taken_over(opened, clock):
    a, b = opened("a"), opened("b")
    a.claim(["k"], 60)
    clock.now += 59
    assert not b.claim(["k"], 60)
    clock.now += 1
    assert b.claim(["k"], 60) == {"k"}


def test_a_renewed_lease_holds(opened, clock):
    a, b = opened("a"), opened("b")
    a.claim(["k"], 60)
    clock.now += 59
    a.renew(60)
    clock.now += 59
    assert not b.claim(["k"], 60)


def test_a_lease_holds_for_a_machine_whose_clock_is_a_little_behind(opened, clock):
    opened("a").claim(["k"], 60)
    clock.now -= CLOCK_SKEW / 2
    assert not opened("b").claim(["k"], 60)


def test_a_clock_that_is_set_back_leaves_no_row_locked(opened, clock):
    opened("a").claim(["k"], 60)
    clock.now -= 86_400
    assert opened("b").claim(["k"], 60) == {"k"}


@pytest.mark.parametrize("until", [1e300, "x", None, float("inf")])
def test_no_file_can_hold_a_row_forever(opened, path, clock, until):
    opened("a").claim(["k"], 60)
    change(path, "UPDATE claims SET until = ?", until)
    assert opened("b").claim(["k"], 60) == {"k"}


def test_a_lease_is_bounded(opened, clock):
    opened("a").claim(["k"], 1e9)
    clock.now += LONGEST_CLAIM
    assert opened("b").claim(["k"], 60) == {"k"}


@pytest.mark.parametrize("ahead", [0, CLOCK_SKEW])
def test_a_stranger_s_claim_holds_for_a_lease_and_the_skew_at_most(opened, path, clock, ahead):
    opened("a").claim(["long", "short"], 20)
    began = clock.now + ahead
    change(path, "UPDATE claims SET since = ?, until = ? WHERE key = 'long'", began, began + 3600)
    change(path, "UPDATE claims SET since = ?, until = ? WHERE key = 'short'", began, began + 20)
    assert opened("b").claim(["long", "short"], 20) == {"long"}
    clock.now += ahead + 20
    assert opened("c").claim(["short"], 20) == {"short"}


def test_a_final_row_is_not_claimed(opened):
    a, b = opened("a"), opened("b")
    a.put([("k", record(), 1)])
    assert not b.claim(["k"], 60)


def test_a_failed_row_is_stored_and_may_be_claimed_again(opened):
    a, b = opened("a"), opened("b")
    a.claim(["k"], 60)
    a.put([("k", failed(), 3)])
    assert not b.find(["k"])["k"].final
    assert b.claim(["k"], 60) == {"k"}
    assert b.put([("k", record(), 1)]) == {"k": 4}
    found = b.find(["k"])["k"]
    assert found.final
    assert found.attempts == 4


def test_a_row_in_flight_at_a_kill_counts_as_asked(opened, clock):
    opened("killed").claim(["k"], 60)
    clock.now += 60
    store = opened("next")
    store.claim(["k"], 60)
    store.put([("k", record(), 1)])
    assert store.find(["k"])["k"].attempts == 2


def test_a_released_row_was_not_asked_and_is_free(opened):
    a, b = opened("a"), opened("b")
    a.claim(["k"], 60)
    a.release(["k"])
    assert b.claim(["k"], 60) == {"k"}
    b.put([("k", record(), 1)])
    assert b.find(["k"])["k"].attempts == 1


def test_a_row_that_is_given_up_after_its_request_counts(opened):
    a = opened("a")
    a.claim(["k"], 60)
    a.release(["k"], attempted=True)
    a.claim(["k"], 60)
    a.put([("k", record(), 1)])
    assert a.find(["k"])["k"].attempts == 2


def test_nobody_releases_what_another_holds(opened):
    opened("a").claim(["k"], 60)
    opened("b").release(["k"])
    assert not opened("b").claim(["k"], 60)


def test_the_first_answer_stays_when_a_late_one_comes(opened, clock):
    a, b = opened("a"), opened("b")
    a.claim(["k"], 60)
    clock.now += 60
    b.claim(["k"], 60)
    b.put([("k", record("first"), 1)])
    a.put([("k", record("late"), 1)])
    found = a.find(["k"])["k"]
    assert found.record["conversation"] == "first"
    assert found.attempts == 3  # one more than it was: the late one's own claim was taken over


def test_a_late_failure_does_not_free_what_another_asks_now(opened, clock):
    a, b, c = opened("a"), opened("b"), opened("c")
    a.claim(["k"], 60)
    clock.now += 60
    b.claim(["k"], 60)
    a.put([("k", failed(), 1)])
    assert not c.claim(["k"], 60)


def test_a_failure_does_not_replace_an_answer(opened):
    store = opened()
    store.put([("k", record(), 1)])
    store.put([("k", failed(), 1)])
    assert store.find(["k"])["k"].final


def test_more_keys_than_one_statement_takes(opened):
    store = opened()
    keys = [f"k{n}" for n in range(1_201)]
    assert store.claim(keys, 60) == set(keys)
    made = record()
    store.put([(key, made, 1) for key in keys])
    assert len(store.find(keys)) == 1_201


BIG = "a large value " * 10_000


def large():
    """Return a record with a payload."""
    log = make_log()
    changed = [
        type(e)(**{**{f: getattr(e, f) for f in e.__struct_fields__}, "content": BIG})
        if isinstance(e, Result)
        else e
        for e in log
    ]
    return run_record(changed)


def test_a_value_of_many_rows_is_stored_once(opened, path):
    made = large()
    assert made["payloads"]
    store = opened()
    store.put([(f"k{n}", made, 1) for n in range(50)])
    store.close()
    assert path.stat().st_size < 10 * len(BIG)
    found = opened().find([f"k{n}" for n in range(50)])
    assert all(
        s.mine and Payloads.attach(s.record)["payloads"] == made["payloads"] for s in found.values()
    )


def test_a_payload_that_a_stranger_put_there_is_replaced(opened, path):
    store, made = opened(), large()
    (name,) = made["payloads"]
    store.claim(["k"], 60)
    change(path, "INSERT INTO payloads VALUES(?, ?)", name, b'"wrong"')
    store.put([("k", made, 1)])
    assert store.find(["k"])["k"].mine


def test_a_payload_that_is_missing_makes_a_row_not_the_user_s(opened, path):
    store = opened()
    store.put([("k", large(), 1)])
    change(path, "DELETE FROM payloads")
    assert not store.find(["k"])["k"].mine


def test_payloads_of_payloads_do_not_go_round_forever(opened, path):
    name = "2:" + "0" * 64
    looping = OTHER.sign({"row": "k", "events": [{"type": "user", "content": {"$payload": name}}]})
    opened().put([("k", record(), 1)])
    change(path, "UPDATE rows SET record = ?", json.dumps(looping).encode())
    change(path, "INSERT INTO payloads VALUES(?, ?)", name, json.dumps({"$payload": name}).encode())
    assert not opened().find(["k"])["k"].mine


def traces(path: Path, words: bytes) -> list[str]:
    """Return the files of a store that hold words."""
    return [p.name for p in path.parent.glob(f"*{path.name}*") if words in p.read_bytes()]


def test_forgotten_text_is_gone_from_the_bytes(opened, path):
    store, other = opened(), opened("b")
    kept = {**record(), "id": "kept", "conversation": "STAYS"}
    gone = {**large(), "id": "gone", "conversation": "SECRET"}
    store.put([("k", kept, 1), ("g", gone, 1), ("h", {**gone, "id": "gone too"}, 1)])
    assert traces(path, b"SECRET")
    assert store.forget(["gone", "gone too", "unknown"]) == 2
    assert not traces(path, b"SECRET")
    assert not traces(path, b"a large value a large")
    assert traces(path, b"STAYS")
    assert set(other.find(["k", "g"])) == {"k"}
    assert other.claim(["g"], 60) == {"g"}


def test_a_map_is_forgotten_without_the_others_of_its_file(opened, path):
    other = opened(map_id="other", title="Translate {{ text }}")
    other.put([("o", record(run="kept"), 1)])
    store = opened("b", title="Classify SECRET")
    store.put([(f"k{n}", record("SECRET"), 1) for n in range(3)])
    assert store.maps() == {"m": ("Classify SECRET", 3), "other": ("Translate {{ text }}", 1)}
    assert store.forget_map() == 3
    assert store.maps() == {"other": ("Translate {{ text }}", 1)}
    assert not traces(path, b"SECRET")
    assert not store.forget_map()


def test_a_payload_that_another_row_uses_stays(opened):
    store, made = opened(), large()
    store.put([("k", {**made, "id": "kept"}, 1), ("g", {**made, "id": "gone"}, 1)])
    store.forget(["gone"])
    assert store.find(["k"])["k"].mine


def test_text_that_was_replaced_is_gone_too(opened, path):
    store = opened()
    store.put([("k", {**failed(), "conversation": "SECRET"}, 1)])
    store.put([("k", record(), 1)])
    store.close()
    assert not traces(path, b"SECRET")


def test_a_store_that_is_only_read_gives_rows_and_takes_none(opened, path):
    opened().put([("k", record(), 1)])
    store = opened("b", read_only=True)
    assert store.find(["k"])["k"].final
    with pytest.raises(UsageError, match="readonly"):
        store.put([("x", record(), 1)])


def test_a_closed_store_says_so(opened):
    store = opened()
    store.close()
    store.close()
    with pytest.raises(UsageError, match="is closed"):
        store.find(["k"])
