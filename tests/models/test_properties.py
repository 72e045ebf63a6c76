"""What holds for every decoder, whatever bytes come and however they are cut."""

import json

import pytest
from helpers.examples import count_examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_nb.models import parts
from agent_nb.models.chat.decoder import ChatDecoder
from agent_nb.models.gemini_api.decoder import GeminiDecoder
from agent_nb.models.messages_api.decoder import AnthropicDecoder
from agent_nb.models.responses.decoder import ResponsesDecoder

DECODERS = pytest.mark.parametrize(
    "decoder_of", [ChatDecoder, AnthropicDecoder, ResponsesDecoder, GeminiDecoder]
)
WORDS = [
    "type",
    "id",
    "model",
    "choices",
    "index",
    "delta",
    "message",
    "content",
    "text",
    "thinking",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "usage",
    "prompt_tokens",
    "error",
    "finish_reason",
    "content_block",
    "partial_json",
    "signature",
    "item",
    "output",
    "output_index",
    "response",
    "content_index",
    "summary",
    "status",
    "x_groq",
    "refusal",
    "tool_use",
    "text_delta",
    "thinking_delta",
    "input_json_delta",
    "content_block_start",
    "message_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "response.output_text.delta",
    "response.output_item.added",
    "response.completed",
    "response.output_item.done",
    "response.function_call_arguments.delta",
    "function_call",
    "reasoning.text",
    "candidates",
    "parts",
    "thought",
    "functionCall",
    "args",
    "partialArgs",
    "jsonPath",
    "stringValue",
    "willContinue",
    "finishReason",
    "usageMetadata",
    "promptTokenCount",
    "promptFeedback",
    "blockReason",
    "inlineData",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=5),
)
VALUES = st.recursive(
    SCALARS,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(WORDS), v, max_size=5),
    max_leaves=20,
)
FRAMES = st.lists(st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=6), max_size=6)
QUICK = settings(
    max_examples=count_examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def run(decoder, data, cuts=()):
    out, last = [], 0
    for cut in sorted({min(c, len(data)) for c in cuts}):
        out += decoder.feed(data[last:cut])
        last = cut
    out += decoder.feed(data[last:])
    return [*out, *decoder.close()]


def sse(frames, event=""):
    head = f"event: {event}\n" if event else ""
    return "".join(f"{head}data: {json.dumps(f)}\n\n" for f in frames).encode()


@DECODERS
@QUICK
@given(frames=FRAMES, event=st.sampled_from(["", "error", "message"]))
def test_any_json_is_read_without_an_exception(decoder_of, frames, event):
    out = run(decoder_of(), sse(frames, event))
    assert all(isinstance(part, parts.Part) for part in out)
    assert sum(isinstance(part, parts.Fault) for part in out) <= 1


@DECODERS
@QUICK
@given(
    data=st.binary(max_size=80),
    head=st.sampled_from([b"", b"data: ", b"{", b"event: error\ndata: ", b"<html>"]),
)
def test_any_bytes_are_read_without_an_exception(decoder_of, data, head):
    assert sum(isinstance(part, parts.Fault) for part in run(decoder_of(), head + data)) <= 1


@DECODERS
@QUICK
@given(frames=FRAMES, cuts=st.lists(st.integers(0, 400), max_size=8))
def test_the_parts_do_not_depend_on_the_cuts(decoder_of, frames, cuts):
    data = sse(frames)
    assert repr(run(decoder_of(), data, cuts)) == repr(run(decoder_of(), data))


TEXTS = st.lists(st.text(max_size=8), max_size=8)


def chat(texts):
    return [{"choices": [{"index": 0, "delta": {"content": t}}]} for t in texts] + [
        {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    ]


def anthropic(texts):
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}}
        for t in texts
    ]
    start = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    return [start, *deltas, {"type": "content_block_stop", "index": 0}, {"type": "message_stop"}]


def responses(texts):
    deltas = [
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": t}
        for t in texts
    ]
    return [*deltas, {"type": "response.completed", "response": {"status": "completed"}}]


@pytest.mark.parametrize(
    ("decoder_of", "write"),
    [(ChatDecoder, chat), (AnthropicDecoder, anthropic), (ResponsesDecoder, responses)],
)
@QUICK
@given(texts=TEXTS, cuts=st.lists(st.integers(0, 600), max_size=5))
def test_the_text_is_what_was_sent(decoder_of, write, texts, cuts):
    out = run(decoder_of(), sse(write(texts)), cuts)
    assert "".join(p.text for p in out if isinstance(p, parts.Text)) == "".join(texts)
    assert not any(isinstance(p, parts.Fault) for p in out)


@QUICK
@given(
    args=st.dictionaries(st.text(max_size=5), SCALARS.filter(lambda v: v == v), max_size=4),
    data=st.data(),
)
def test_arguments_survive_any_fragments(args, data):
    raw = json.dumps(args)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    first = {"index": 0, "id": "a", "function": {"name": "f", "arguments": pieces[0]}}
    rest = [{"index": 0, "function": {"arguments": piece}} for piece in pieces[1:]]
    frames = [{"choices": [{"delta": {"tool_calls": [call]}}]} for call in (first, *rest)]
    out = run(
        ChatDecoder(), sse([*frames, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}])
    )
    (call,) = [p for p in out if isinstance(p, parts.Call)]
    assert (call.raw_args, call.args, call.fault) == (raw, json.loads(raw), "")
