"""Usage of other protocols means what ours means: the input has the tokens of a cache in it, and
they are counted apart as well.
"""

import json

import pytest

from agent_nb.codecs.convert import decode
from agent_nb.events import End, Metric, RunStart

LOOM = {"session_id": "s", "node_id": "n", "event_id": 2, "type": "usage"}
LOOOPY = {"contextId": "c", "taskId": "t", "kind": "llm-usage"}


def loom(**counts):
    frames = [
        {"session_id": "s", "event_id": 1, "type": "run_start", "message": "hi"},
        {**LOOM, **counts},
    ]
    return "".join(f"{json.dumps(f)}\n" for f in frames)


def looopy(**counts):
    objects = [
        {**LOOOPY, "kind": "task-created", "initiator": {"type": "user"}},
        {**LOOOPY, **counts},
    ]
    return "".join(f"event: {o['kind']}\ndata: {json.dumps(o)}\n\n" for o in objects)


def ag_ui(**usage):
    run = {"threadId": "t", "runId": "r"}
    events = [{"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run, "usage": [usage]}]
    return "".join(f"data: {json.dumps(e)}\n\n" for e in events)


WAYS = {
    "loom": (loom, ("prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens")),
    "looopy": (
        looopy,
        ("prompt_tokens", "completion_tokens", "cache_read_input_tokens", "total_tokens"),
    ),
    "ag-ui": (ag_ui, ("inputTokens", "outputTokens", "cachedInputTokens", "totalTokens")),
}


@pytest.mark.parametrize("codec", WAYS)
@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ((9, 2, 4, 11), (9, 2, 4)),
        ((9, 2, 4, 15), (13, 2, 4)),
        ((9, 2, 40, None), (49, 2, 40)),
        ((9, 2, None, 11), (9, 2, 0)),
        ((9, 2, 4, None), (9, 2, 4)),
    ],
)
def test_tokens_of_a_cache_are_in_the_input(codec, reported, expected):
    write, names = WAYS[codec]
    usage = {name: value for name, value in zip(names, reported, strict=True) if value is not None}
    (metric,) = [e for e in decode(write(**usage), codec) if isinstance(e, Metric)]
    assert (metric.step.input, metric.step.output, metric.step.cached) == expected
    assert metric.total == metric.step


def test_ag_ui_has_the_tokens_written_to_a_cache_others_lose_them(tool):
    usage = {"inputTokens": 9, "outputTokens": 2, "cachedInputTokens": 4, "cacheWriteTokens": 3}
    (metric,) = [e for e in decode(ag_ui(**usage), "ag-ui") if isinstance(e, Metric)]
    assert metric.total.cache_written == 3
    used = Metric(total=metric.total, step=metric.total)
    assert tool("ag-ui").lines([RunStart(), used, End()])[-1]["usage"] == [
        {**usage, "totalTokens": 11}
    ]
    loom = tool("loom")
    loom.write([RunStart(), used, End()])
    assert loom.encoder.losses.counts()["metric.step"] == 1
