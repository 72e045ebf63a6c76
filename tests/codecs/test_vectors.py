"""The wire vectors that concern frames: what goes in comes out as the vectors expect it."""

import json

import pytest
from helpers.paths import DATA

from agent_nb.codecs.framing import Unframer
from agent_nb.codecs.losses import Losses

VECTORS = [
    json.loads(line) for line in (DATA / "wire.jsonl").read_text(encoding="utf-8").splitlines()
]


def of(system):
    return [pytest.param(v, id=v["name"]) for v in VECTORS if v["system"] == system]


def chunkings(vector):
    whole = "".join(vector["chunks"]).encode()
    return [vector["chunks"], [whole], [whole[i : i + 1] for i in range(len(whole))]]


@pytest.mark.parametrize("vector", of("loom_frames"))
def test_loom_frames(vector, tool):
    loom = tool("loom")
    for chunks in chunkings(vector):
        events = loom.read(chunks)
        assert loom.lines(events) == vector["expected_events"]
        assert loom.lines([e for e in events if e.type != "delta"]) == vector["expected_events"]


@pytest.mark.parametrize("vector", of("sse_frames"))
def test_sse_frames(vector):
    for chunks in chunkings(vector):
        unframer = Unframer(Losses())
        items = [i for c in chunks for i in unframer.feed(c)] + unframer.close()
        assert [{"event": i.event, "data": i.obj, "id": i.id} for i in items] == vector[
            "expected_events"
        ]


def _meaning(events):
    """Return stored events in the words of the vectors; call ids by order of appearance."""
    numbers = {}
    names = {e.call_id: e.name for e in events if e.type == "call"}

    def call(event):
        return {
            "call_id": numbers.setdefault(event.call_id, f"#{len(numbers) + 1}"),
            "name": names[event.call_id],
        }

    out = []
    for event in events:
        note = event.extra["agent-event"]
        if note.get("derived"):
            continue
        if event.type == "think":
            out.append({"type": "thought", "content": event.content})
        elif event.type == "respond":
            out.append({"type": "stream", "content": event.content})
        elif event.type == "end":
            out.append({"type": "final"})
        elif event.type == "error":
            out.append({"type": "error", "error": event.message})
        elif event.type == "call":
            sound = event.raw_args == "{}" or event.args
            out.append(
                {
                    "type": "tool_call",
                    **call(event),
                    **({"arguments": event.args} if sound else {"arguments_raw": event.raw_args}),
                }
            )
        elif event.type == "progress":
            data = (
                event.data
                if event.data is not None
                else note.get("fields", {}).get("data", event.text)
            )
            out.append({"type": "tool_progress", **call(event), "data": data})
        else:
            out.append(
                {
                    "type": "tool_result",
                    **call(event),
                    "output": event.content,
                    "is_error": event.status == "error",
                }
            )
    return out


@pytest.mark.parametrize("vector", of("agentevent_sse"))
def test_agentevent_sse(vector, tool):
    for chunks in chunkings(vector):
        events = [e for e in tool("agent-event").read(chunks) if e.type != "delta"]
        assert _meaning(events) == vector["expected_events"]
