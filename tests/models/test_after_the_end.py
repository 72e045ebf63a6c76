"""What follows a whole answer changes nothing, in whatever pieces it comes."""

import json

import pytest
from helpers.examples import count_examples
from helpers.waiting import wait
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb.errors import ModelError
from agent_nb.models import parts
from agent_nb.models.chat.decoder import ChatDecoder
from agent_nb.models.gemini_api.decoder import GeminiDecoder
from agent_nb.models.http import stream
from agent_nb.models.messages_api.decoder import AnthropicDecoder
from agent_nb.models.responses.decoder import ResponsesDecoder


def sse(*frames, named=False):
    texts = [frame if isinstance(frame, str) else json.dumps(frame) for frame in frames]
    names = [f"event: {f['type']}\n" if named and isinstance(f, dict) else "" for f in frames]
    pairs = zip(names, texts, strict=True)
    return "".join(f"{name}data: {text}\n\n" for name, text in pairs).encode()


CHAT = sse(
    {"model": "m", "choices": [{"index": 0, "delta": {"content": "paid"}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}},
    "[DONE]",
)
MESSAGES = sse(
    {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "paid"},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 5},
    },
    {"type": "message_stop"},
    named=True,
)
USED = {"status": "completed", "usage": {"input_tokens": 3, "output_tokens": 5}}
RESPONSES = sse(
    {"type": "response.created", "response": {"model": "m"}},
    {"type": "response.output_text.delta", "output_index": 0, "delta": "paid"},
    {"type": "response.completed", "response": USED},
    named=True,
)
APIS = pytest.mark.parametrize(
    ("decoder_of", "answer"),
    [(ChatDecoder, CHAT), (AnthropicDecoder, MESSAGES), (ResponsesDecoder, RESPONSES)],
    ids=["chat", "messages", "responses"],
)
RESTS = [
    b"data: [DONE]\n\n",
    b": keep-alive\n\ndata: [DONE]\n\n",
    b'event: error\ndata: {"type": "error", "error": {"message": "late"}}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"content": "more"}}]}\n\n',
    b"data: {no json\n\n",
    b"<html>gateway</html>",
    b"\xff\xfe\x00",
]


class Reply:
    """An answer in these pieces, which may break off after them."""

    def __init__(self, pieces, *, breaks=False):
        self.pieces, self.breaks = pieces, breaks

    async def chunks(self):
        for piece in self.pieces:
            if piece:
                yield piece
        if self.breaks:
            raise ModelError("The connection broke off.", retryable=True, code="cut")


def read(decoder_of, *answers, **options):
    """Read answers, each in its pieces, as every provider does; return what they add up to."""

    async def main():
        sums = set()
        for pieces in answers:
            reply, seen = Reply(pieces, **options), []
            async for batch in stream._read(reply, decoder_of()):
                seen += batch
            sums.add(summed(seen))
        return sums

    return wait(main)


def summed(seen):
    texts = "".join(p.text for p in seen if isinstance(p, parts.Text))
    usage = tuple((p.input, p.output) for p in seen if isinstance(p, parts.Usage))[-1:]
    faults = tuple(p.code for p in seen if isinstance(p, parts.Fault))
    return texts, usage, len([p for p in seen if isinstance(p, parts.Finish)]), faults


WHOLE = ("paid", ((3, 5),), 1, ())


@pytest.mark.few(10)
@APIS
@pytest.mark.parametrize("rest", RESTS)
def test_what_follows_is_discarded_wherever_it_is_split(decoder_of, answer, rest):
    data = answer + rest
    twos = [[data[:cut], data[cut:]] for cut in range(len(data) + 1)]
    assert read(decoder_of, *twos, [bytes([byte]) for byte in data]) == {WHOLE}


@APIS
@pytest.mark.parametrize("rest", RESTS)
def test_a_decoder_discards_it_however_long_it_is_fed(decoder_of, answer, rest):
    for size in (1, 2, 7, 64, 10_000):
        decoder, data = decoder_of(), answer + rest * 3
        seen = [p for i in range(0, len(data), size) for p in decoder.feed(data[i : i + size])]
        assert summed([*seen, *decoder.close()]) == WHOLE


@APIS
@settings(max_examples=count_examples(60), deadline=None)
@given(rest=st.binary(max_size=60), cuts=st.lists(st.integers(0, 900), max_size=6))
def test_any_bytes_may_follow(decoder_of, answer, rest, cuts):
    data, ends = answer + rest, sorted(cuts)
    pieces = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
    assert read(decoder_of, pieces) == {WHOLE}


@APIS
def test_a_break_behind_the_answer_is_no_fault(decoder_of, answer):
    assert read(decoder_of, [answer], breaks=True) == {WHOLE}


GEMINI = sse(
    {"candidates": [{"content": {"parts": [{"text": "paid"}]}}]},
    {"candidates": [{"finishReason": "STOP"}]},
    {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5}},
)
REASON = [
    (GeminiDecoder, GEMINI, b'"finishReason": "STOP"}]}\n\n'),
    (ChatDecoder, CHAT, b'"finish_reason": "stop"}]}\n\n'),
    (AnthropicDecoder, MESSAGES, b'"output_tokens": 5}}\n\n'),
]


@pytest.mark.parametrize(
    ("decoder_of", "answer", "reason"), REASON, ids=["gemini", "chat", "messages"]
)
@pytest.mark.parametrize("breaks", [False, True])
def test_after_its_reason_to_finish_an_answer_may_end_anywhere(decoder_of, answer, reason, breaks):
    start = answer.index(reason) + len(reason)
    cuts = [[answer[:cut]] for cut in range(start, len(answer) + 1)]
    sums = read(decoder_of, *cuts, breaks=breaks)
    assert {(text, finishes, faults) for text, _, finishes, faults in sums} == {("paid", 1, ())}


@APIS
def test_a_break_before_it_is_whole_is_a_fault(decoder_of, answer):
    cut = answer.index(b"paid") + 9
    with pytest.raises(ModelError, match="broke off"):
        read(decoder_of, [answer[:cut]])
    with pytest.raises(ModelError, match="broke off"):
        read(decoder_of, [answer[:cut]], breaks=True)


def test_an_error_between_reason_and_end_is_still_said():
    error = {"error": {"message": "overdrawn"}}
    data = CHAT[: CHAT.index(b'data: {"choices": [], "usage"')] + sse(error)
    with pytest.raises(ModelError, match="overdrawn"):
        read(ChatDecoder, [data])
