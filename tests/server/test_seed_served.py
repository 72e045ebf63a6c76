"""Seed 004 § Event Filtering at SSE Layer: internal events reach no client that did not ask for
them, whatever event holds them.
"""

import json

import pytest

from agent_nb import events as ev
from agent_nb.codecs.looopy import codec as looopy

WHERE = {"taskId": "t", "contextId": "c"}
SH = {"toolCallId": "x", "toolName": "sh"}
KINDS = [
    "task-status",
    "internal:llm-call",
    "internal:tool-start",
    "content-delta",
    "internal:checkpoint",
    "internal:new",
    "task-complete",
]
LINES = [
    {
        "kind": kind,
        **WHERE,
        **({"delta": "4"} if kind == "content-delta" else SH if "tool" in kind else {}),
    }
    for kind in KINDS
]


@pytest.fixture
def published(rig):
    """A server with a run that was read from Looopy, internal events included."""
    server = rig()
    decoder = looopy.decoder()
    events = [*decoder.feed("".join(json.dumps(line) + "\n" for line in LINES)), *decoder.close()]
    server.publish("t", *(e for e in events if e.type != "delta"))
    return server


def kinds(server, accept, **query):
    answer = server.client.get(
        "/runs/t/events", params={"format": "looopy", **query}, headers={"Accept": accept}
    )
    if accept == "application/x-ndjson":
        return [json.loads(line)["kind"] for line in answer.text.splitlines()]
    frames = [f for f in answer.text.split("\n\n") if "data:" in f]
    data = [json.loads(f.partition("data: ")[2]) for f in frames]
    return [
        o.get("kind") or f.partition("event: ")[2].partition("\n")[0]
        for o, f in zip(data, frames, strict=True)
    ]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
def test_internal_events_are_left_out(accept, published):
    assert kinds(published, accept) == ["task-status", "content-delta", "task-complete"]


def test_internal_events_come_where_asked_for(published):
    assert kinds(published, "application/x-ndjson", internal="1") == KINDS


def test_a_checkpoint_of_ours_is_an_internal_event_of_that_format_only(rig):
    server = rig()
    server.publish("t", ev.RunStart(), ev.State(kind="checkpoint", payload={"n": 1}), ev.End())
    assert "internal:checkpoint" not in kinds(server, "text/event-stream")
    assert [o["type"] for o in server.lines("/runs/t/events")] == ["run_start", "state", "end"]
