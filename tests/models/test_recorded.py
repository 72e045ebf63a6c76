"""Recorded streams of real providers add up to what their index says, in any chunking, and end well
wherever they are cut.

The recordings are not part of the project: without the folder `../shared/streams` these tests are
skipped.
"""

import hashlib
import json
import os
import pickle
from pathlib import Path

import pytest

from agent_nb.models import parts
from agent_nb.models.chat.decoder import ChatDecoder
from agent_nb.models.messages_api.decoder import AnthropicDecoder
from agent_nb.models.responses.decoder import ResponsesDecoder

FOLDER = Path(__file__).parents[3] / "shared" / "streams"
INDEX = json.loads((FOLDER / "index.json").read_text()) if FOLDER.is_dir() else []
DECODERS = {
    "openai-chat": ChatDecoder,
    "anthropic-messages": AnthropicDecoder,
    "openai-responses": ResponsesDecoder,
}
CASES = pytest.mark.parametrize(
    "case",
    INDEX
    or [
        pytest.param(
            None, marks=pytest.mark.skip(reason="needs the recordings in ../shared/streams")
        )
    ],
    ids=[case["file"] for case in INDEX] or ["none"],
)


def decode(case, size=0):
    data = (FOLDER / case["file"]).read_bytes()
    decoder = DECODERS[case["api"]]()
    out = []
    for i in range(0, len(data), size or len(data)):
        out += decoder.feed(data[i : i + (size or len(data))])
    return [*out, *decoder.close()]


def told(text, expected, name):
    if f"{name}_sha256" in expected:
        return (
            expected[name]
            if hashlib.sha256(text.encode()).hexdigest() == expected[f"{name}_sha256"]
            else text
        )
    return text


def usage_of(got, api, names):
    if got.usage is None:
        return None
    counted = {"prompt_tokens": got.usage.input, "completion_tokens": got.usage.output}
    return {name: counted.get(name, got.usage.raw.get(name)) for name in names or counted}


@CASES
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 64, 1000])
def test_a_recording_adds_up(case, size, total):
    got, expected = total(decode(case, size)), case["expected"]
    assert told(got.text, expected, "text") == expected["text"]
    assert told(got.reasoning, expected, "reasoning") == expected["reasoning"]
    assert [{"id": c[0], "name": c[1], "arguments": c[2]} for c in got.calls] == expected["calls"]
    assert got.finish == expected["finish"]
    assert usage_of(got, case["api"], expected["usage"]) == expected["usage"]
    assert [json.loads(f.raw) for f in got.faults] == (
        [expected["error"]] if expected["error"] else []
    )


UNNAMED = {
    "index": ("output_index",),
    "numbers": ("output_index", "content_index"),
    "names": ("output_index", "content_index", "item_id"),
}


@CASES
@pytest.mark.parametrize("missing", UNNAMED)
def test_a_recording_without_the_names_of_its_items_adds_up_all_the_same(case, missing, total):
    if case["api"] != "openai-responses":
        pytest.skip("has no such names")
    lines = []
    for line in (FOLDER / case["file"]).read_text(encoding="utf-8").split("\n"):
        event = json.loads(line[6:]) if line.startswith("data: {") else None
        kept = (
            None
            if event is None
            else {name: value for name, value in event.items() if name not in UNNAMED[missing]}
        )
        lines.append(line if kept is None else f"data: {json.dumps(kept)}")
    decoder = ResponsesDecoder()
    got, expected = (
        total([*decoder.feed("\n".join(lines).encode()), *decoder.close()]),
        case["expected"],
    )
    assert told(got.text, expected, "text") == expected["text"]
    assert told(got.reasoning, expected, "reasoning") == expected["reasoning"]
    assert [{"id": c[0], "name": c[1], "arguments": c[2]} for c in got.calls] == expected["calls"]


@CASES
def test_blocks_and_items_of_other_kinds_are_kept(case, total):
    got, expected = total(decode(case)), case["expected"]
    kept = [p.payload["type"] for p in got.of(parts.Resend) if "type" in p.payload]
    kept += [
        p.opaque["block"]["type"] for p in got.of(parts.Thought) if p.opaque and "block" in p.opaque
    ]
    items = [kind for kind in expected.get("items", []) if kind not in ("message", "function_call")]
    assert kept == expected.get("other_blocks", items)


@CASES
def test_calls_of_a_recording_have_sound_arguments(case, total):
    for call in total(decode(case)).of(parts.Call):
        assert (call.incomplete, call.fault) == (False, "")
        assert call.args == json.loads(call.raw_args)


@CASES
def test_pieces_of_arguments_join_to_the_arguments(case, total):
    got = total(decode(case))
    for call in got.of(parts.Call):
        assert (
            "".join(d.text for d in got.of(parts.CallDelta) if d.index == call.index)
            == call.raw_args
        )


class Ledger:
    """What is open after some parts: named blocks and announced calls, and whether the end was
    told.
    """

    def __init__(self, other=None):
        self.blocks = set(other.blocks) if other else set()
        self.calls = set(other.calls) if other else set()
        self.finished = other.finished if other else False
        self.faults = other.faults if other else 0

    def add(self, seen):
        for part in seen:
            kind = type(part)
            if kind in (parts.Text, parts.Thought) and part.block:
                self.blocks.add(part.block)
            elif kind is parts.Close:
                self.blocks.discard(part.block)
            elif kind is parts.CallDelta:
                self.calls.add(part.index)
            elif kind is parts.Call:
                self.calls.discard(part.index)
                assert (
                    self.finished
                    or part.incomplete
                    or part.args == json.loads(part.raw_args or "{}")
                )
            elif kind is parts.Finish:
                self.finished = True
            elif kind is parts.Fault:
                self.faults += 1

    def check(self, *, whole):
        assert (self.blocks, self.calls) == (set(), set())
        assert self.faults <= 1
        assert self.finished or self.faults or whole


@CASES
def test_a_recording_cut_anywhere_ends_well(case):
    """No exception, no open block or call, at most one fault, and one where the end is missing.

    At every byte of the first and last frames and of every 40th, elsewhere and in very long frames
    at every 13th; AGENT_NB_EVERY_BYTE=1: at every byte.
    """
    data = (FOLDER / case["file"]).read_bytes()
    decoder, ledger, start = DECODERS[case["api"]](), Ledger(), 0
    frames = data.split(b"\n\n")
    for number, frame in enumerate(frames):
        frozen = pickle.dumps(decoder)
        end = min(start + len(frame) + 2, len(data))
        near = number < 8 or number > len(frames) - 8 or number % 40 == 0
        each = os.environ.get("AGENT_NB_EVERY_BYTE") or (near and len(frame) < 4000)
        for offset in range(start, end, 1 if each else 13):
            cut, after = pickle.loads(frozen), Ledger(ledger)
            after.add(cut.feed(data[start:offset]))
            after.add(cut.close())
            after.check(whole=b"[DONE]" in data[:offset] or b'"choices":[]' in data[:offset])
        ledger.add(decoder.feed(data[start:end]))
        start = end
