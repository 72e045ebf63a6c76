"""Items of the Responses API: found whatever names a server gives them, told once, and no call is
made up.
"""

import copy
import json
from collections import Counter

import pytest

from agent_nb.models import parts
from agent_nb.models.responses.decoder import ResponsesDecoder
from agent_nb.models.responses.items import CALL, Items, Key

CALLS = [("call_a", "f", '{"x": 1}'), ("call_b", "g", '{"y": "é"}')]


def stream(*, interleaved=False):
    """Return an answer as OpenAI sends it: reasoning, text and two calls."""
    reasoning = {"type": "reasoning", "id": "rs_0", "summary": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant"}
    calls = [
        {"type": "function_call", "id": f"fc_{n}", "call_id": call_id, "name": name}
        for n, (call_id, name, _) in enumerate(CALLS, 2)
    ]
    first = [
        {"type": "output_item.added", "output_index": 0, "item": {**reasoning}},
        *(
            {
                "type": "reasoning_text.delta",
                "output_index": 0,
                "item_id": "rs_0",
                "content_index": 0,
                "delta": d,
            }
            for d in ("hm", " so")
        ),
        {
            "type": "reasoning_text.done",
            "output_index": 0,
            "item_id": "rs_0",
            "content_index": 0,
            "text": "hm so",
        },
        {
            "type": "output_item.done",
            "output_index": 0,
            "item": {**reasoning, "content": [{"type": "reasoning_text", "text": "hm so"}]},
        },
        {"type": "output_item.added", "output_index": 1, "item": {**message, "content": []}},
        *(
            {
                "type": "output_text.delta",
                "output_index": 1,
                "item_id": "msg_1",
                "content_index": 0,
                "delta": d,
            }
            for d in ("I ", "look.")
        ),
        {
            "type": "output_text.done",
            "output_index": 1,
            "item_id": "msg_1",
            "content_index": 0,
            "text": "I look.",
        },
        {
            "type": "output_item.done",
            "output_index": 1,
            "item": {**message, "content": [{"type": "output_text", "text": "I look."}]},
        },
    ]
    several = [
        [
            {"type": "output_item.added", "output_index": n, "item": {**item, "arguments": ""}},
            *(
                {
                    "type": "function_call_arguments.delta",
                    "output_index": n,
                    "item_id": item["id"],
                    "delta": d,
                }
                for d in (raw[:4], raw[4:])
            ),
            {
                "type": "function_call_arguments.done",
                "output_index": n,
                "item_id": item["id"],
                "arguments": raw,
            },
            {"type": "output_item.done", "output_index": n, "item": {**item, "arguments": raw}},
        ]
        for n, (item, (_, _, raw)) in enumerate(zip(calls, CALLS, strict=True), 2)
    ]
    last = (
        [e for pair in zip(*several, strict=True) for e in pair]
        if interleaved
        else several[0] + several[1]
    )
    output = [e["item"] for e in (*first, *last) if e["type"] == "output_item.done"]
    begin = {"type": "created", "response": {"id": "r", "model": "m", "output": []}}
    end = {
        "type": "completed",
        "response": {"id": "r", "model": "m", "status": "completed", "output": output},
    }
    return copy.deepcopy([begin, *first, *last, end])


def without(*fields, only=""):
    """Return a change: fields are left out, of events whose type ends with `only`."""
    return lambda events: [
        e if not e["type"].endswith(only) else {k: v for k, v in e.items() if k not in fields}
        for e in events
    ]


def unnumbered(*fields, item=True):
    """Return a change: no index, none of the `fields`, and with `item` items without an id."""

    def change(events):
        for event in without("output_index", *fields)(events):
            if item and "item" in event:
                event["item"].pop("id", None)
            yield event

    return change


def silent(*types):
    """Return a change: events of these types never come."""
    return lambda events: [e for e in events if not e["type"].endswith(types)]


def renamed(*, numbered=False, always=False):
    """Return a change: an item has another id in its announcement, its pieces, its end and the
    whole response (`always`: in each event).
    """

    def change(events):
        for number, event in enumerate(events if numbered else without("output_index")(events)):
            stage = (
                str(number)
                if always
                else {"added": "A", "delta": "B"}.get(event["type"].rpartition(".")[2], "C")
            )
            if "item_id" in event:
                event["item_id"] = f"{stage}{event['item_id']}"
            if "id" in event.get("item", {}):
                event["item"]["id"] = f"{stage}{event['item']['id']}"
            for item in event.get("response", {}).get("output", ()):
                item["id"] = f"whole-{item['id']}"
            yield event

    return change


def same_index(events):
    """Number every item 0, as some proxies do."""
    return [{**e, "output_index": 0} if "output_index" in e else e for e in events]


def same_id(events):
    """Give every item the same id."""
    for event in events:
        if "item_id" in event:
            event["item_id"] = "item_0"
        if "item" in event:
            event["item"]["id"] = "item_0"
        yield event


def llama(events):
    """Write as llama.cpp's server does: no numbers, calls without an id whose pieces name the
    `call_id`, no end of reasoning.
    """
    for event in silent("reasoning_text.done", "arguments.done")(
        without("output_index", "content_index")(events)
    ):
        item = event.get("item", {})
        ids = {"fc_2": "call_a", "fc_3": "call_b"}
        if item.get("type") == "function_call":
            item.pop("id")
        if "item_id" in event:
            event["item_id"] = ids.get(event["item_id"], event["item_id"])
        for whole in event.get("response", {}).get("output", ()):
            if whole["type"] == "function_call":
                whole.pop("id", None)
        yield event


def calls_at_the_end(events):
    """Tell calls nowhere but in the whole response."""
    about = {"fc_2", "fc_3"}
    return [
        e
        for e in events
        if e.get("item_id") not in about and e.get("item", {}).get("id") not in about
    ]


SEVERAL = {  # names enough to keep interleaved items apart
    "as it should be": lambda events: events,
    "no index": without("output_index"),
    "no index, no number of the content": without("output_index", "content_index"),
    "index only on pieces": without("output_index", only=("added", "done")),
    "index only on announcements": without("output_index", only=("delta", "done")),
    "index only at ends": without("output_index", only=("added", "delta")),
    "no ids of items": lambda events: (
        {**e, "item": without("id")([{"type": "", **e["item"]}])[0]} if "item" in e else e
        for e in events
    ),
    "no ids on pieces": without("item_id"),
    "no announcements": silent("added"),
    "no announcements, no index": lambda events: without("output_index")(silent("added")(events)),
    "one index for all": same_index,
    "one id for all": same_id,
    "another id at each stage, numbered": renamed(numbered=True),
    "another id with each event, numbered": renamed(numbered=True, always=True),
    "llama.cpp": llama,
    "nothing but wholes": silent("delta"),
    "nothing but items": silent("delta", "_text.done", "arguments.done"),
    "nothing but the response": silent("delta", ".done", "added"),
    "calls only in the response": calls_at_the_end,
}
ONE_BY_ONE = {
    "no names at all": unnumbered("item_id"),
    "no names, no number of the content": unnumbered("item_id", "content_index"),
    "another id at each stage": renamed(),
    "another id with each event": renamed(always=True),
    "no ends of items": silent("item.done"),
    "no ends of items, no names": lambda events: unnumbered("item_id")(silent("item.done")(events)),
    "no announcements, no names": lambda events: unnumbered("item_id")(silent("added")(events)),
    "announced twice": lambda events: (
        e
        for event in events
        for e in ([event, event] if event["type"].endswith("added") else [event])
    ),
    "ended twice": lambda events: (
        e
        for event in events
        for e in ([event, event] if event["type"].endswith("item.done") else [event])
    ),
}
CASES = [
    *((n, c, False) for n, c in (SEVERAL | ONE_BY_ONE).items()),
    *((f"{n}, interleaved", c, True) for n, c in SEVERAL.items()),
]
EVERY = pytest.mark.parametrize(
    ("change", "interleaved"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)


def frames(change, interleaved):
    return [
        f"data: {json.dumps({**e, 'type': 'response.' + e['type']})}\n\n".encode()
        for e in change(stream(interleaved=interleaved))
    ]


def decode(*chunks):
    decoder = ResponsesDecoder()
    out = [part for chunk in chunks for part in decoder.feed(chunk)]
    return [*out, *decoder.close()]


@EVERY
def test_everything_is_emitted_once_under_any_names(change, interleaved, total):
    got = total(decode(*frames(change, interleaved)))
    assert (got.text, got.reasoning) == ("I look.", "hm so")
    assert got.calls == CALLS
    assert [(c.index, c.args, c.incomplete, c.fault) for c in got.of(parts.Call)] == [
        (n, json.loads(raw), False, "") for n, (_, _, raw) in enumerate(CALLS)
    ]
    assert (got.finish, got.faults) == ("completed", [])
    assert Counter(p.block for p in got.of(parts.Close)).keys() == {
        p.block for p in (*got.of(parts.Text), *got.of(parts.Thought))
    }


@EVERY
def test_pieces_of_arguments_stay_with_their_call(change, interleaved, total):
    got = total(decode(*frames(change, interleaved)))
    for call in got.of(parts.Call):
        assert (
            "".join(d.text for d in got.of(parts.CallDelta) if d.index == call.index)
            == call.raw_args
        )


@EVERY
def test_it_does_not_matter_where_the_chunks_end(change, interleaved):
    wholes = frames(change, interleaved)
    data = b"".join(wholes)
    assert (
        repr(decode(*(data[i : i + 1] for i in range(len(data)))))
        == repr(decode(data))
        == repr(decode(*wholes))
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name", ["no index", "no names at all", "llama.cpp", "another id at each stage"]
)
def test_it_does_not_matter_where_a_chunk_is_cut_in_two(name):
    decoder = ResponsesDecoder()
    for frame in frames((SEVERAL | ONE_BY_ONE)[name], False):
        expected = repr(copy.deepcopy(decoder).feed(frame))
        for at in range(len(frame)):
            other = copy.deepcopy(decoder)
            assert repr([*other.feed(frame[:at]), *other.feed(frame[at:])]) == expected
        decoder.feed(frame)


@EVERY
def test_a_cut_leaves_nothing_open_and_finishes_no_call(change, interleaved, total):
    wholes = frames(change, interleaved)
    for end in range(1, len(wholes) - 1):
        got = total(decode(*wholes[:end]))
        assert [f.code for f in got.faults] == ["cut"]
        assert len(got.of(parts.Call)) == len({d.index for d in got.of(parts.CallDelta)}) <= 2
        assert {p.block for p in (*got.of(parts.Text), *got.of(parts.Thought))} == {
            p.block for p in got.of(parts.Close)
        }


def test_thousands_of_items_of_one_index_have_blocks_of_their_own_at_once():
    items, blocks = Items(), set()
    for index in ["0'1", *[0] * 5000]:
        item = items.begin(CALL, [Key("index", index)])
        item.done = True
        blocks.add(item.block)
    assert len(blocks) == len(items) == 5001


def test_a_call_that_the_limit_of_tokens_cut_off_is_incomplete(total):
    begun = [f for f in frames(without("output_index"), False) if b"fc_" not in f or b"fc_2" in f][
        :-3
    ]
    end = {
        "type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    }
    (call,) = total(decode(*begun, f"data: {json.dumps(end)}\n\n".encode())).of(parts.Call)
    assert (call.incomplete, call.fault) == (True, "The call was cut off at the limit of tokens.")


def test_the_model_is_named_when_the_server_names_it(total):
    late = [
        {"type": "created", "response": {"id": "r"}},
        {"type": "completed", "response": {"id": "r", "model": "m"}},
    ]
    got = total(decode(*frames(lambda _: late, False)))
    assert got.of(parts.Head)[-1] == parts.Head(200, "m", "r")
