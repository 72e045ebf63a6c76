"""Chat completions: the shapes in which servers write a stream."""

import json

import pytest

from agent_nb.models import parts
from agent_nb.models.chat.decoder import ChatDecoder
from agent_nb.models.messages_api.decoder import AnthropicDecoder
from agent_nb.models.responses.decoder import ResponsesDecoder


def sse(*chunks, done=True):
    lines = [c if isinstance(c, str) else f"data: {json.dumps(c)}\n\n" for c in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def delta(finish=None, **fields):
    return {
        "id": "r",
        "model": "m",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def call(index=None, call_id=None, name=None, args=None, **extra):
    made = {"index": index, "id": call_id, "function": {"name": name, "arguments": args}, **extra}
    return {k: v for k, v in made.items() if v is not None}


@pytest.fixture
def decode(total):
    def run(*chunks, done=True, size=0):
        data = sse(*chunks, done=done)
        decoder = ChatDecoder()
        out = []
        for i in range(0, len(data), size or len(data)):
            out += decoder.feed(data[i : i + (size or len(data))])
        return total([*out, *decoder.close()])

    return run


def test_text_comes_in_pieces_as_sent(decode):
    got = decode(delta(content="Hel"), delta(content="lo"), delta("stop"))
    assert [p.text for p in got.of(parts.Text)] == ["Hel", "lo"]
    assert (got.finish, got.faults) == ("stop", [])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 64])
def test_the_parts_do_not_depend_on_the_chunking(decode, size):
    chunks = [
        delta(reasoning_content="é🙂 "),
        delta(content="日本"),
        delta(tool_calls=[call(0, "a", "f", '{"x": "🙂"}')]),
        delta("tool_calls"),
    ]
    assert decode(*chunks, size=size).parts == decode(*chunks).parts


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_under_either_name_and_remembers_which(decode, field):
    got = decode(
        delta(**{field: "hm "}), delta(**{field: "ok"}), delta(content="yes"), delta("stop")
    )
    assert (got.reasoning, got.text) == ("hm ok", "yes")
    assert got.of(parts.Thought)[0].opaque == {"provider": "openai", "field": field}
    assert got.of(parts.Thought)[1].opaque is None


def test_reasoning_sent_twice_is_emitted_once(decode):
    detail = {"type": "reasoning.text", "text": "hm", "index": 0}
    assert (
        decode(
            delta(reasoning="hm", reasoning_content="hm", reasoning_details=[detail]), delta("stop")
        ).reasoning
        == "hm"
    )


@pytest.mark.parametrize(
    "detail",
    [
        {"type": "reasoning.text", "text": "hm", "index": 0},
        {"type": "reasoning.summary", "summary": "hm", "index": 0},
    ],
)
def test_reasoning_comes_as_details_alone(decode, detail):
    assert decode(delta(reasoning_details=[detail]), delta("stop")).reasoning == "hm"


def test_signed_details_go_back_with_the_calls(decode):
    details = [
        [{"type": "reasoning.text", "text": "h", "index": 0, "signature": None}],
        [{"type": "reasoning.text", "text": "m", "index": 0}],
        [{"type": "reasoning.text", "text": "", "signature": "SIG", "index": 0}],
        [{"type": "reasoning.encrypted", "data": "BLOB", "id": "e1", "index": 0}],
    ]
    got = decode(
        *[delta(reasoning_details=d) for d in details],
        delta(tool_calls=[call(0, "a", "f", "{}")]),
        delta("tool_calls"),
    )
    (resend,) = got.of(parts.Resend)
    assert resend.provider == "openai"
    assert resend.payload["message"]["reasoning_details"] == [
        {"type": "reasoning.text", "text": "hm", "index": 0, "signature": "SIG"},
        {"type": "reasoning.encrypted", "data": "BLOB", "id": "e1", "index": 0},
    ]
    kinds = [type(p) for p in got.parts]
    assert kinds.index(parts.Resend) < kinds.index(parts.Call)


def test_reasoning_with_empty_data_is_one_item_with_that_without_data(decode):
    text = {"type": "reasoning.text", "index": 0, "id": "r"}
    details = [{**text, "text": "h", "data": ""}, {**text, "text": "m", "signature": "SIG"}]
    got = decode(
        *[delta(reasoning_details=[d]) for d in details],
        delta(tool_calls=[call(0, "a", "f", "{}")]),
        delta("tool_calls"),
    )
    (resend,) = got.of(parts.Resend)
    (item,) = resend.payload["message"]["reasoning_details"]
    assert item == {**text, "text": "hm", "data": "", "signature": "SIG"}


def test_without_an_index_the_position_of_reasoning_details_counts(decode):
    fragment = {"type": "reasoning.text", "index": None, "signature": "SIG", "tags": ["x"]}
    got = decode(
        delta(reasoning_details=[{**fragment, "text": text} for text in "ab"]),
        delta(reasoning_details=[{**fragment, "text": "c", "tags": []}]),
        delta(tool_calls=[call(0, "a", "f", "{}")]),
        delta("tool_calls"),
    )
    (resend,) = got.of(parts.Resend)
    first, second = resend.payload["message"]["reasoning_details"]
    assert (first, second) == ({**fragment, "text": "ac"}, {**fragment, "text": "b"})


def test_a_reasoning_summary_beside_an_empty_text_is_read(decode):
    detail = {"type": "reasoning.summary", "text": "", "summary": "hm", "index": 0}
    assert decode(delta(reasoning_details=[detail]), delta("stop")).reasoning == "hm"


def test_content_may_be_a_list_of_thinking_and_text(decode):
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    got = decode(
        delta(content=[thinking]),
        delta(content=[{"type": "text", "text": "yes"}]),
        delta(content="!"),
        delta("stop"),
    )
    assert (got.reasoning, got.text) == ("hm", "yes!")


def test_other_pieces_of_content_are_kept(decode):
    reference = {"type": "reference", "reference_ids": [1]}
    assert decode(
        delta(content=[reference, {"type": "text", "text": "x"}]), delta("stop")
    ).extras == {"content": reference}


def test_a_refusal_is_text(decode):
    assert decode(delta(refusal="I cannot."), delta("stop")).text == "I cannot."


def test_fragments_of_a_call_are_joined(decode):
    got = decode(
        delta(tool_calls=[call(0, "c1", "list", "")]),
        delta(tool_calls=[call(0, args='{"pa')]),
        delta(tool_calls=[call(0, args='th": "."}')]),
        delta("tool_calls"),
    )
    assert got.calls == [("c1", "list", '{"path": "."}')]
    assert got.of(parts.Call)[0].args == {"path": "."}
    assert "".join(p.text for p in got.of(parts.CallDelta)) == '{"path": "."}'


def test_interleaved_calls_are_kept_apart(decode):
    got = decode(
        delta(tool_calls=[call(0, "a", "f", '{"x":')]),
        delta(tool_calls=[call(1, "b", "g", '{"y":')]),
        delta(tool_calls=[call(0, args=" 1}"), call(1, args=" 2}")]),
        delta("tool_calls"),
    )
    assert got.calls == [("a", "f", '{"x": 1}'), ("b", "g", '{"y": 2}')]


SHAPES = {
    "no index": [
        [call(None, "a", "f", '{"x":'), call(None, "b", "g", "{}")],
        [call(None, "a", None, " 1}")],
    ],
    "no index and no id after the first": [
        [call(None, "a", "f", '{"x":')],
        [call(None, args=" 1}")],
        [call(None, "b", "g", "{}")],
    ],
    "index zero for all": [[call(0, "a", "f", '{"x": 1}')], [call(0, "b", "g", "{}")]],
    "name and id in every fragment": [
        [call(0, "a", "f", '{"x":')],
        [call(0, "a", "f", " 1}")],
        [call(1, "b", "g", "{}")],
    ],
    "a new id in every fragment": [
        [call(0, "a", "f", '{"x":')],
        [call(0, "zzz", None, " 1}")],
        [call(1, "b", "g", "{}")],
    ],
    "name in every fragment": [
        [call(0, "a", "f", '{"x":')],
        [call(0, None, "f", " 1}")],
        [call(1, "b", "g", "{}")],
    ],
    "id after the name": [
        [call(0, None, "f", '{"x":')],
        [call(0, "a", None, " 1}")],
        [call(1, "b", "g", "{}")],
    ],
    "name in pieces": [
        [call(0, "a", "f", None)],
        [call(0, "a", None, '{"x": 1}')],
        [call(1, "b", "g", "{}")],
    ],
    "whole calls in one chunk": [[call(0, "a", "f", '{"x": 1}'), call(1, "b", "g", "{}")]],
    "indexes from one": [[call(1, "a", "f", '{"x": 1}')], [call(2, "b", "g", "{}")]],
    "an object for a list": [call(0, "a", "f", '{"x": 1}'), [call(1, "b", "g", "{}")]],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_are_told_apart_whatever_is_missing(decode, shape):
    got = decode(*[delta(tool_calls=c) for c in SHAPES[shape]], delta("tool_calls"))
    assert got.calls == [("a", "f", '{"x": 1}'), ("b", "g", "{}")]


def test_calls_without_ids_are_told_apart(decode):
    got = decode(
        delta(tool_calls=[call(0, None, "f", '{"x": 1}')]),
        delta(tool_calls=[call(0, None, "f", '{"x": 2}')]),
        delta("stop"),
    )
    assert [c[2] for c in got.calls] == ['{"x": 1}', '{"x": 2}']


def test_a_name_in_two_pieces_is_one_name(decode):
    got = decode(
        delta(tool_calls=[call(0, "a", "get_")]),
        delta(tool_calls=[call(0, None, "time", "{}")]),
        delta("tool_calls"),
    )
    assert got.calls == [("a", "get_time", "{}")]


def test_arguments_may_be_an_object(decode):
    assert decode(delta(tool_calls=[call(0, "a", "f", {"x": 1})]), delta("tool_calls")).of(
        parts.Call
    )[0].args == {"x": 1}


def test_no_arguments_are_an_empty_object(decode):
    (made,) = decode(delta(tool_calls=[call(0, "a", "f", "")]), delta("tool_calls")).of(parts.Call)
    assert (made.args, made.fault) == ({}, "")


def test_the_old_function_call_is_a_call(decode):
    got = decode(
        delta(function_call={"name": "f", "arguments": '{"x":'}),
        delta(function_call={"arguments": " 1}"}),
        delta("function_call"),
    )
    assert got.calls == [("", "f", '{"x": 1}')]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("{broken", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ("[" * 30000, "not valid JSON"),
    ],
)
def test_a_call_with_bad_arguments_has_a_fault_and_is_complete(decode, raw, words):
    (made,) = decode(delta(tool_calls=[call(0, "a", "f", raw)]), delta("tool_calls")).of(parts.Call)
    assert words in made.fault
    assert (made.incomplete, made.raw_args) == (False, raw)


def test_calls_are_out_when_the_server_says_it_has_finished(total):
    decoder = ChatDecoder()
    got = total(
        decoder.feed(
            sse(delta(tool_calls=[call(0, "a", "f", "{}")]), delta("tool_calls"), done=False)
        )
    )
    assert got.calls == [("a", "f", "{}")]
    assert total(decoder.close()).calls == []


def test_an_early_finish_reason_does_not_end_a_call(decode):
    got = decode(
        delta("tool_calls", tool_calls=[call(0, "a", "f", '{"x":')]),
        delta("tool_calls", tool_calls=[call(0, args=" 1}")]),
    )
    assert got.calls == [("a", "f", '{"x": 1}')]


def test_a_call_at_the_token_limit_is_incomplete(decode):
    (made,) = decode(delta(tool_calls=[call(0, "a", "f", '{"x":')]), delta("length")).of(parts.Call)
    assert made.incomplete
    assert "limit of tokens" in made.fault


def test_what_a_call_carries_beside_its_arguments_goes_back(decode):
    extra = {"google": {"thought_signature": "SIG"}}
    got = decode(
        delta(tool_calls=[call(0, "a", "f", "{}", extra_content=extra, type="function")]),
        delta("stop"),
    )
    assert got.of(parts.Resend)[0].payload == {"tool_calls": {"a": {"extra_content": extra}}}


USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 4,
    "prompt_tokens_details": {"cached_tokens": 6},
    "completion_tokens_details": {"reasoning_tokens": 3},
    "cost": 0.5,
}


@pytest.mark.parametrize(
    "last",
    [
        [delta("stop"), {"choices": [], "usage": USAGE}],
        [delta("stop") | {"usage": USAGE}],
        [delta("stop") | {"x_groq": {"id": "x", "usage": USAGE}}],
        [delta("stop") | {"x_groq": {"usage": USAGE}, "usage": USAGE}],
        [{"choices": [{"delta": {}, "finish_reason": "stop", "usage": USAGE}]}],
    ],
)
def test_usage_is_found_wherever_it_is_put(decode, last):
    (usage,) = decode(delta(content="x"), *last).of(parts.Usage)
    assert (usage.input, usage.output, usage.cached, usage.reasoning, usage.cost) == (
        10,
        4,
        6,
        3,
        0.5,
    )
    assert usage.raw == USAGE


def test_of_usage_in_every_chunk_the_last_one_counts(decode):
    got = decode(
        *[
            delta(content="x") | {"usage": {"prompt_tokens": 1, "completion_tokens": n}}
            for n in (1, 1, 2)
        ],
        delta("stop"),
    )
    assert [u.output for u in got.of(parts.Usage)] == [1, 2]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 3}, (5, 0, 3)),
        ({"input_tokens": 5, "output_tokens": 6}, (5, 6, 0)),
        (
            {"prompt_tokens": None, "completion_tokens": "7", "prompt_tokens_details": None},
            (0, 0, 0),
        ),
        ({"prompt_tokens": 5.0, "completion_tokens": 2}, (5, 2, 0)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            (9, 2, 4),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            (13, 2, 4),
        ),
        (
            {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 40}},
            (49, 2, 40),
        ),
    ],
)
def test_usage_is_read_in_other_words(decode, usage, expected):
    got = decode(delta("stop") | {"usage": usage}).usage
    assert (got.input, got.output, got.cached) == expected


@pytest.mark.parametrize("count", [None, 0])
def test_without_usage_there_is_none(decode, count):
    usage = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count}
    assert decode(delta(content="x"), delta("stop") | {"usage": None}).usage is None
    assert decode(delta(content="x"), delta("stop") | {"usage": usage}).usage is None


ERRORS = {
    "in a chunk": [{"error": {"message": "Token limit reached", "code": 400}}],
    "beside choices": [delta() | {"error": {"message": "Token limit reached", "code": 400}}],
    "event: error": [
        'event: error\ndata: {"error": {"message": "Token limit reached", "code": 400}}\n\n'
    ],
    "bare under event: error": [
        'event: error\ndata: {"message": "Token limit reached", "code": 400}\n\n'
    ],
    "object": [{"object": "error", "message": "Token limit reached", "code": 400}],
    "type": [{"type": "error", "error": {"message": "Token limit reached", "code": 400}}],
    "in a list": ['data: [{"error": {"message": "Token limit reached", "code": 400}}]\n\n'],
    "in the choice": [
        {"choices": [{"delta": {}, "error": {"message": "Token limit reached", "code": 400}}]}
    ],
    "a text": [{"error": "Token limit reached"}],
    "of a router's backend": [delta() | {"x_groq": {"error": "Token limit reached"}}],
    "a detail": [{"detail": "Token limit reached"}],
    "a line of llama.cpp": ['error: {"code": 400, "message": "Token limit reached"}\n\n'],
    "words on such a line": ["error: Token limit reached\n\n"],
    "words under event: error": ["event: error\ndata: Token limit reached\n\n"],
    "a JSON text under event: error": ['event: error\ndata: "Token limit reached"\n\n'],
}


@pytest.mark.parametrize("shape", ERRORS)
@pytest.mark.parametrize("done", [True, False])
def test_an_error_in_the_stream_is_one_fault(decode, shape, done):
    got = decode(delta(content="half"), *ERRORS[shape], done=done)
    (fault,) = got.faults
    assert (fault.code, fault.message, fault.retryable) == (
        "provider",
        "Token limit reached",
        False,
    )
    assert "Token limit" in fault.raw
    assert got.text == "half"


def test_a_finish_reason_error_is_a_fault_without_words(decode):
    got = decode(delta(content="half"), delta("error"))
    assert [fault.code for fault in got.faults] == ["provider"]
    assert got.text == "half"


@pytest.mark.parametrize(
    "error",
    [
        {"code": 503},
        {"code": "rate_limit_exceeded"},
        {"type": "overloaded_error"},
        {"type": "server_error"},
    ],
)
def test_an_error_that_passes_says_so(decode, error):
    assert decode({"error": {"message": "x", **error}}).faults[0].retryable


def test_an_error_of_a_router_names_the_origin(decode):
    error = {
        "message": "Provider returned error",
        "metadata": {"raw": '{"error": {"message": "context too long"}}'},
    }
    assert decode({"error": error}).faults[0].message == "Provider returned error: context too long"


def test_usage_beside_an_error_is_kept(decode):
    got = decode(
        delta() | {"error": {"message": "x"}, "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    )
    assert got.usage.input == 3
    assert isinstance(got.parts[-1], parts.Fault)


def test_done_may_be_missing_after_a_finish_reason(decode):
    assert decode(delta(content="x"), delta("stop"), done=False).faults == []


def test_a_finish_reason_may_be_missing_before_done(decode):
    got = decode(delta(content="x"), delta(tool_calls=[call(0, "a", "f", "{}")]))
    assert got.faults == []
    assert not got.of(parts.Call)[0].incomplete


def test_the_last_frame_may_lack_its_blank_line(decode):
    got = decode(
        delta(content="x"),
        'data: {"choices":[{"delta":{"content":"y"},"finish_reason":"stop"}]}',
        done=False,
    )
    assert (got.text, got.faults) == ("xy", [])


def test_a_stream_without_an_end_is_cut_and_closes_its_calls(decode):
    got = decode(delta(content="x"), delta(tool_calls=[call(0, "a", "f", "{}")]), done=False)
    assert [f.code for f in got.faults] == ["cut"]
    (made,) = got.of(parts.Call)
    assert made.incomplete
    assert "broke off" in made.fault


def test_an_answer_that_the_server_aborts_is_cut_and_closes_its_calls(decode):
    got = decode(delta(content="x"), delta(tool_calls=[call(0, "a", "f", "{}")]), delta("abort"))
    assert (got.text, [(f.code, f.retryable) for f in got.faults]) == ("x", [("cut", True)])
    (made,) = got.of(parts.Call)
    assert made.incomplete


def test_unknown_fields_are_kept_once_or_when_they_change(decode):
    got = decode(
        *[delta(content="x") | {"citations": ["a"], "flavour": n} for n in range(3)],
        delta(content="y", executed_tools=[{"index": 0}]) | {"citations": ["a", "b"]},
        delta("stop"),
    )
    extras = [(p.name, p.payload) for p in got.of(parts.Extra)]
    assert extras == [
        ("citations", ["a"]),
        ("flavour", 1),
        ("executed_tools", [{"index": 0}]),
        ("citations", ["a", "b"]),
    ]


def test_bookkeeping_and_empty_fields_are_no_extras(decode):
    chunk = delta(content="x", refusal="", role="assistant", annotations=[])
    chunk |= {
        "system_fingerprint": "fp",
        "created": 1,
        "obfuscation": "zz",
        "provider": "P",
        "service_tier": None,
    }
    chunk["choices"][0]["logprobs"] = {"content": None, "refusal": None}
    assert decode(chunk, delta("stop")).extras == {}


def test_a_whole_message_beside_the_delta_is_not_repeated(decode):
    last = {"choices": [{"delta": {}, "message": {"content": "one"}, "finish_reason": "stop"}]}
    assert decode(delta(content="one"), last).text == "one"


def test_a_second_alternative_is_left_out(decode):
    other = {"choices": [{"index": 1, "delta": {"content": "other"}}]}
    assert decode(delta(content="one"), other, delta("stop")).text == "one"


def test_a_chunk_before_the_choices_is_not_a_head(decode):
    azure = {"choices": [], "id": "", "model": "", "prompt_filter_results": [{"prompt_index": 0}]}
    got = decode(azure, delta(content="x"), delta("stop"))
    assert got.of(parts.Head) == [parts.Head(200, "m", "r")]
    assert got.extras == {"prompt_filter_results": [{"prompt_index": 0}]}


def test_an_answer_without_a_stream_is_read_whole(total):
    message = {
        "role": "assistant",
        "content": "yes",
        "reasoning_content": "hm",
        "tool_calls": [call(None, "a", "f", "{}"), call(None, "b", "f", "{}")],
    }
    decoder = ChatDecoder()
    body = json.dumps(
        {
            "id": "r",
            "model": "m",
            "choices": [{"message": message, "finish_reason": "tool_calls"}],
            "usage": USAGE,
        }
    )
    early = [p for i in range(0, len(body), 10) for p in decoder.feed(body[i : i + 10].encode())]
    got = total(decoder.close())
    assert early == []
    assert (got.text, got.reasoning, got.finish, got.usage.input, got.faults) == (
        "yes",
        "hm",
        "tool_calls",
        10,
        [],
    )
    assert got.calls == [("a", "f", "{}"), ("b", "f", "{}")]


def test_json_lines_are_read_as_chunks(total):
    decoder = ChatDecoder()
    lines = [delta(content="a"), delta(content="b"), delta("stop")]
    assert decoder.feed("\n".join(map(json.dumps, lines)).encode()) == []
    assert total(decoder.close()).text == "ab"


def test_a_character_cut_in_two_is_put_together(decode):
    got = decode(
        'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        'data: {"choices":[{"delta":{"content":"\\ude42b"}}]}\n\n',
        delta("stop"),
    )
    assert [p.text for p in got.of(parts.Text)] == ["a", "🙂b"]


def test_half_a_character_at_the_end_is_not_lost(decode):
    assert (
        decode('data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n', delta("stop")).text
        == "a\ud83d"
    )


HOSTILE = [
    'data: {"choices": 3}\n\n',
    'data: {"choices": [null, 3, {"delta": null}]}\n\n',
    'data: {"choices": [{"delta": {"content": 3, "reasoning": 4, "tool_calls": [null, 3, {"function": 3}]}}]}\n\n',
    'data: {"choices": [{"delta": {"content": {"type": "text"}, "reasoning_details": 7, "tool_calls": 3}, "finish_reason": 3}]}\n\n',
    'data: {"usage": 3, "x_groq": 4, "choices": [{"index": [], "delta": {}, "usage": []}]}\n\n',
    'data: {"usage": {"prompt_tokens": 1e400, "completion_tokens": [], "cost": {"total_cost": "x"}}}\n\n',
    'data: {"model": 3, "id": {}, "choices": [{"delta": {"tool_calls": [{"index": [1], "id": 5, "function": {"name": 7}}]}}]}\n\n',
    "data: 3\n\ndata: null\n\ndata: []\n\ndata:\n\n",
    'data: {"error": []}\n\ndata: {"error": 0}\n\n',
    'data: {"choices": [{"delta": {"content": "' + "\\u0000" + '"}}]}\n\n',
    'data: {"a": ' + "[" * 5000 + "]" * 5000 + "}\n\n",
    "data: \xff\xfe\n\n",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_exception_escapes_whatever_comes(text):
    decoder = ChatDecoder()
    decoder.feed(text.encode("latin-1"))
    decoder.feed(sse(delta(content="x")))
    decoder.close()


def test_two_streams_may_interleave(total):
    first, second = ChatDecoder(), ChatDecoder()
    one = [*first.feed(sse(delta(content="a"), done=False))]
    two = [*second.feed(sse(delta(content="b"), done=False))]
    one += first.feed(sse(delta("stop")))
    two += second.feed(sse(delta("stop")))
    assert (total(one).text, total(two).text) == ("a", "b")


@pytest.mark.parametrize("odd", [[1], {"a": 1}, [[]]])
def test_reasoning_details_with_odd_indexes_are_read(decode, odd):
    details = [{"index": odd, "type": odd, "data": "x", "id": odd, "text": t} for t in "hm"]
    assert decode(*(delta(reasoning_details=[d]) for d in details), delta("stop")).reasoning == "hm"


@pytest.mark.parametrize("decoder", [ChatDecoder, AnthropicDecoder, ResponsesDecoder])
def test_no_depth_of_a_value_makes_a_decoder_raise(decoder):
    for depth in range(400, 1000, 3):
        _read_nested(decoder, "[" * depth + "]" * depth)


def _read_nested(decoder, nested):
    item = f'{{"type": "function_call", "name": "f", "arguments": {nested}}}'
    block = f'{{"type": "tool_use", "id": "a", "name": "f", "input": {{"a": {nested}}}}}'
    for data in (
        f'{{"type": "error", "error": {nested}}}',
        f'{{"type": "response.output_item.done", "item": {item}}}',
        f'{{"type": "content_block_start", "index": 0, "content_block": {block}}}',
        f'{{"choices": [{{"delta": {{"tool_calls": [{{"function": {{"name": "f", "arguments": {nested}}}}}]}}}}]}}',
    ):
        reader = decoder()
        reader.feed(f"data: {data}\n\n".encode())
        reader.close()


@pytest.mark.parametrize("cost", ["NaN", "1e999", "-1e999", "-3", "true", "1" + "0" * 400])
def test_a_cost_or_count_that_is_no_amount_is_unknown(decode, cost):
    usage = decode(
        f'data: {{"choices": [], "usage": {{"cost": {cost}, "prompt_tokens": {cost}}}}}\n\n'
    ).usage
    assert (usage.cost, usage.input) == (None, 0)
