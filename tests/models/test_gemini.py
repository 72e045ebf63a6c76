"""Google's Gemini API: what comes back."""

import json

import pytest
from helpers.examples import count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb.models import parts
from agent_nb.models.answer_decoder import make_decoder
from agent_nb.models.gemini_api.decoder import GeminiDecoder

PATH = "/v1beta/models/gemini-2.5-flash"
USED = {
    "promptTokenCount": 20,
    "cachedContentTokenCount": 12,
    "toolUsePromptTokenCount": 3,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 35,
}


def chunk(*pieces, **fields):
    candidate = {"content": {"parts": list(pieces), "role": "model"}, "index": 0, **fields}
    return {"candidates": [candidate], "modelVersion": "gemini-2.5-flash", "responseId": "r1"}


def call(name, **fields):
    return {"functionCall": {"name": name, **fields}, "thoughtSignature": "c2ln"}


STREAM = [
    chunk({"text": "So, ", "thought": True}),
    chunk({"text": "hm.", "thought": True}, {"text": "It "}),
    chunk({"text": "is 3 — é."}) | {"usageMetadata": {"promptTokenCount": 20}},
    chunk(call("add", args={"a": 1, "b": [2]}), call("now", id="f1")),
    chunk(finishReason="STOP") | {"usageMetadata": USED},
]


def sse(*chunks):
    return "".join(f"data: {json.dumps(c, ensure_ascii=False)}\r\n\r\n" for c in chunks).encode()


def read(data, size=1 << 20, cuts=()):
    decoder, ends = GeminiDecoder(), [*cuts, *range(size, len(data), size)]
    pieces = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
    out = [part for piece in pieces for part in decoder.feed(piece)]
    return merged([*out, *decoder.close()])


def merged(seen):
    """Return parts with the pieces of a text joined."""
    out = []
    for part in seen:
        last = out[-1] if out else None
        if isinstance(part, parts.Text | parts.Thought) and type(last) is type(part):
            out[-1] = type(part)(last.text + part.text)
        else:
            out.append(part)
    return out


def of(kind, seen):
    return [part for part in seen if isinstance(part, kind)]


def test_a_stream_has_thoughts_text_calls_reason_and_usage():
    seen = read(sse(*STREAM))
    assert seen[0] == parts.Head(200, "gemini-2.5-flash", "r1")
    assert of(parts.Thought, seen) == [parts.Thought("So, hm.")]
    assert "".join(part.text for part in of(parts.Text, seen)) == "It is 3 — é."
    assert of(parts.Call, seen) == [
        parts.Call("add", {"a": 1, "b": [2]}, raw_args='{"a": 1, "b": [2]}'),
        parts.Call("now", {}, call_id="f1", index=1),
    ]
    assert of(parts.Finish, seen) == [parts.Finish("STOP")]
    usage = of(parts.Usage, seen)[-1]
    assert (usage.input, usage.cached, usage.output, usage.reasoning) == (23, 12, 12, 5)
    assert not of(parts.Fault, seen)


def test_the_parts_do_not_depend_on_where_the_stream_is_cut():
    data = sse(*STREAM)
    whole = read(data)
    assert read(data, size=1) == whole
    assert all(read(data, cuts=[cut]) == whole for cut in range(len(data)))


def test_a_whole_answer_reads_as_the_stream_with_the_same_parts():
    pieces = [p for c in STREAM for p in c["candidates"][0]["content"]["parts"]]
    answer = chunk(*pieces, finishReason="STOP") | {"usageMetadata": USED}
    expected = [p for p in read(sse(*STREAM)) if not isinstance(p, parts.Usage)]
    for text in (json.dumps(answer), json.dumps(answer, indent=2)):
        for size in (1, 100, 1 << 20):
            seen = read(text.encode(), size)
            assert [p for p in seen if not isinstance(p, parts.Usage)] == expected


def test_a_stream_that_is_a_json_list_reads_as_the_event_stream():
    text = "[" + ",\r\n".join(json.dumps(c, indent=1) for c in STREAM) + "\n]"
    assert read(text.encode(), 7) == read(sse(*STREAM))


def test_a_stream_without_its_reason_is_a_fault_wherever_it_ends():
    data = sse(*STREAM)
    last = data.rindex(b"data: ")
    for cut in range(1, last):
        assert [part.code for part in of(parts.Fault, read(data[:cut]))] in (["cut"], ["garbage"])
    assert of(parts.Fault, read(b""))[0].code == "empty"


ERROR = {
    "error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"},
}


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_an_error_in_the_stream_is_a_fault_that_may_pass(before, size):
    (fault,) = of(parts.Fault, read(sse(*STREAM[:before], ERROR), size))
    assert (fault.code, fault.message, fault.retryable) == (
        "provider",
        "The model is overloaded.",
        True,
    )


@pytest.mark.parametrize("body", [ERROR, [ERROR]])
def test_an_error_for_a_body_is_a_fault(body):
    assert "overloaded" in of(parts.Fault, read(json.dumps(body).encode()))[0].message


def test_usage_without_an_amount_is_none():
    used = {"promptTokenCount": 0, "candidatesTokenCount": None}
    answer = chunk({"text": "x"}, finishReason="STOP") | {"usageMetadata": used}
    assert of(parts.Usage, read(sse(answer))) == []


def test_a_blocked_prompt_ends_the_answer_with_its_reason():
    seen = read(sse({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USED}))
    assert of(parts.Finish, seen) == [parts.Finish("SAFETY")]
    assert of(parts.Extra, seen) == [
        parts.Extra("gemini", "promptFeedback", {"blockReason": "SAFETY"})
    ]
    assert not of(parts.Fault, seen)


def test_other_fields_are_kept_as_they_came_last_and_media_without_bytes():
    ratings = [{"category": "X", "probability": "LOW"}]
    picture = {"inlineData": {"mimeType": "image/png", "data": "aaaa"}}
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    first = chunk(picture, code, safetyRatings=ratings, avgLogprobs=-1)
    last = chunk(safetyRatings=[{**ratings[0], "probability": "HIGH"}], finishReason="STOP")
    extras = {p.name: p.payload for p in of(parts.Extra, read(sse(first, last)))}
    assert extras == {
        "inlineData": {"mimeType": "image/png"},
        "executableCode": code["executableCode"],
        "safetyRatings": [{"category": "X", "probability": "HIGH"}],
    }


def test_of_several_candidates_the_first_is_read():
    both = chunk({"text": "one"}, finishReason="STOP")
    both["candidates"].append({"content": {"parts": [{"text": "two"}]}, "index": 1})
    assert of(parts.Text, read(sse(both))) == [parts.Text("one")]


@pytest.mark.parametrize("method", ["generateContent", "streamGenerateContent"])
def test_the_path_of_a_request_chooses_the_decoder(method):
    assert isinstance(make_decoder(f"{PATH}:{method}"), GeminiDecoder)
    assert make_decoder(f"{PATH}:countTokens") is None


@settings(max_examples=count_examples(80), deadline=None)
@given(
    pieces=st.lists(st.tuples(st.text(max_size=8), st.booleans()), max_size=8),
    cuts=st.lists(st.integers(0, 900), max_size=6),
)
def test_texts_and_thoughts_are_what_was_sent(pieces, cuts):
    sent = [chunk({"text": t, **({"thought": True} if hm else {})}) for t, hm in pieces]
    data = sse(*sent, chunk(finishReason="STOP"))
    seen = read(data, cuts=sorted(min(cut, len(data)) for cut in cuts))
    for kind, thought in ((parts.Thought, True), (parts.Text, False)):
        texts = "".join(t for t, hm in pieces if hm is thought)
        assert "".join(p.text for p in of(kind, seen)) == texts
    assert not of(parts.Fault, seen)
