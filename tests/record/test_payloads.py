"""Payloads of records: attached where they are read, hashed once."""

import json

from agent_nb import events as e
from agent_nb.record import packing
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.packing import LARGE, Payloads
from agent_nb.record.record import METADATA_KEY, events_of, run_record
from agent_nb.record.signing import UserKey, is_intact


def large_run():
    """Return the record of a run with one payload."""
    return run_record([e.State(seq=1, payload="x" * (LARGE + 1)), e.End(seq=2)])


def test_a_payload_is_hashed_once_on_the_way_to_a_replay(monkeypatch):
    record = UserKey(b"key").sign(large_run())
    bare, payloads = Payloads.detach(record)
    notebook = json.loads(
        json.dumps(
            {"cells": [], "metadata": {METADATA_KEY: {"runs": {"c": [bare]}, "payloads": payloads}}}
        )
    )
    hashed = []
    plain = packing._encode_packed

    def counted(packed):
        hashed.append(packed)
        return plain(packed)

    monkeypatch.setattr(packing, "_encode_packed", counted)
    ((_, found),) = NotebookRuns(notebook).list_all()
    assert UserKey(b"key").owns(found)
    assert is_intact(found)
    assert events_of(found)[0].payload == "x" * (LARGE + 1)
    assert len(hashed) == 1


def test_a_whole_record_carries_what_it_needs_and_nothing_else():
    bare, payloads = Payloads.detach(large_run())
    whole = Payloads.attach(bare, {**payloads, "f" * 64: "of another run"})
    assert whole["payloads"] == payloads
    assert Payloads.attach(whole) == whole


def test_the_payload_of_a_record_wins_over_one_beside_it():
    record = large_run()
    (key,) = record["payloads"]
    assert Payloads.list_faults(Payloads.attach(record, {key: "changed"})) == []
    assert Payloads.list_faults(Payloads.detach(record)[0], {key: "changed"}) == [
        f"the payload {key[:12]}… was changed"
    ]


def test_payloads_of_one_source_are_not_copied():
    payloads = Payloads({"a": 1})
    assert Payloads.of(None, payloads, {}) is payloads
    assert Payloads.of({"a": 1}, {"a": 2}) == {"a": 2}
