"""Anthropic's Messages API: what comes back, and what is sent."""

import json
from contextlib import aclosing

import anyio
import pytest

from agent_nb import Agent
from agent_nb.errors import UsageError
from agent_nb.models import parts
from agent_nb.models.anthropic import provider
from agent_nb.models.messages import (
    CallBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    Request,
    ResultBlock,
    TextBlock,
    ThoughtBlock,
    ToolSpec,
    text_message,
)
from agent_nb.models.messages_api.decoder import AnthropicDecoder
from agent_nb.models.messages_api.request import encode


def event(kind, **fields):
    return {"type": kind, **fields}


def start(**usage):
    return event(
        "message_start", message={"id": "msg_1", "model": "claude", "content": [], "usage": usage}
    )


def block(index, begin, *deltas, stop=True):
    events = [event("content_block_start", index=index, content_block=begin)]
    events += [event("content_block_delta", index=index, delta=d) for d in deltas]
    return [*events, *([event("content_block_stop", index=index)] if stop else [])]


def text(index, *pieces):
    return block(
        index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": p} for p in pieces)
    )


def end(reason="end_turn", **usage):
    return [
        event("message_delta", delta={"stop_reason": reason}, usage=usage),
        event("message_stop"),
    ]


def sse(*events):
    return "".join(
        e if isinstance(e, str) else f"event: {e['type']}\ndata: {json.dumps(e)}\n\n"
        for e in events
    )


@pytest.fixture
def decode(total):
    def run(*events, size=0):
        data = sse(*events).encode()
        decoder = AnthropicDecoder()
        out = []
        for i in range(0, len(data), size or len(data)):
            out += decoder.feed(data[i : i + (size or len(data))])
        return total([*out, *decoder.close()])

    return run


def test_text_is_a_block_with_a_beginning_and_an_end(decode):
    got = decode(start(input_tokens=5), event("ping"), *text(0, "Hel", "lo"), *end(output_tokens=2))
    assert got.of(parts.Head) == [parts.Head(200, "claude", "msg_1")]
    assert [p for p in got.parts if isinstance(p, parts.Text | parts.Close)] == [
        parts.Text("Hel", "0"),
        parts.Text("lo", "0"),
        parts.Close("0"),
    ]
    assert (got.finish, got.faults) == ("end_turn", [])


@pytest.mark.parametrize("size", [1, 3, 50])
def test_the_parts_do_not_depend_on_the_chunking(decode, size):
    events = [
        start(),
        *text(0, "é🙂"),
        *block(1, {"type": "tool_use", "id": "t", "name": "f", "input": {}}),
        *end(),
    ]
    assert decode(*events, size=size).parts == decode(*events).parts


def test_a_thought_ends_with_its_signature(decode):
    deltas = [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "SIG"},
    ]
    got = decode(
        start(), *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *deltas), *end()
    )
    assert got.of(parts.Thought) == [
        parts.Thought("hm", "0"),
        parts.Thought("", "0", opaque={"provider": "anthropic", "signature": "SIG"}),
    ]
    assert isinstance(got.parts[got.parts.index(got.of(parts.Thought)[-1]) + 1], parts.Close)


def test_redacted_reasoning_is_an_empty_thought_that_can_go_back(decode):
    redacted = {"type": "redacted_thinking", "data": "BLOB"}
    got = decode(start(), *block(0, redacted), *end())
    (thought,) = got.of(parts.Thought)
    assert (thought.text, thought.attributes) == ("", {"redacted": True})
    assert thought.opaque == {"provider": "anthropic", "block": redacted}


def test_calls_come_with_their_blocks(decode):
    def use(index, call_id, *pieces):
        return block(
            index,
            {"type": "tool_use", "id": call_id, "name": "f", "input": {}},
            *({"type": "input_json_delta", "partial_json": p} for p in pieces),
        )

    got = decode(
        start(),
        *text(0, "I look."),
        *use(1, "a", "", '{"x"', ": 1}"),
        *use(2, "b"),
        *end("tool_use"),
    )
    assert got.calls == [("a", "f", '{"x": 1}'), ("b", "f", "")]
    assert [c.index for c in got.of(parts.Call)] == [0, 1]
    assert [d.text for d in got.of(parts.CallDelta)] == ["", '{"x"', ": 1}", ""]


def test_a_call_whose_input_comes_with_its_start_has_it(decode):
    got = decode(
        start(),
        *block(0, {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}),
        *end("tool_use"),
    )
    assert got.of(parts.Call)[0].args == {"x": 1}


def test_blocks_of_server_tools_go_back_whole(decode):
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u"}]}
    got = decode(
        start(),
        *block(
            0,
            use,
            {"type": "input_json_delta", "partial_json": '{"q":'},
            {"type": "input_json_delta", "partial_json": ' "x"}'},
        ),
        *block(1, result),
        *end(),
    )
    assert [p.payload for p in got.of(parts.Resend)] == [{**use, "input": {"q": "x"}}, result]
    assert got.calls == []


def test_a_block_of_an_unknown_kind_is_put_together_and_kept(decode):
    got = decode(
        start(),
        *block(
            0,
            {"type": "compaction", "content": None},
            {"type": "compaction_delta", "content": "sum"},
        ),
        *end(),
    )
    assert got.of(parts.Resend)[0].payload == {"type": "compaction", "content": "sum"}


def test_citations_are_extras(decode):
    citation = {"type": "char_location", "cited_text": "x"}
    got = decode(
        start(),
        *block(0, {"type": "text", "text": ""}, {"type": "citations_delta", "citation": citation}),
        *end(),
    )
    assert got.extras == {"citation": citation}


def test_what_comes_beside_the_stop_reason_is_kept(decode):
    last = event(
        "message_delta",
        delta={"stop_reason": "refusal", "stop_details": {"category": "x"}},
        context_management={"applied_edits": []},
    )
    assert decode(start(), last, event("message_stop")).extras == {
        "stop_details": {"category": "x"}
    }


def test_an_unknown_event_is_an_extra(decode):
    assert decode(start(), event("brand_new", x=1), *end()).extras == {
        "brand_new": {"type": "brand_new", "x": 1}
    }


def test_usage_is_cumulative_field_by_field(decode):
    got = decode(
        start(input_tokens=100, cache_read_input_tokens=7, output_tokens=1),
        *end(output_tokens=9, input_tokens=None, server_tool_use={}),
    )
    assert (got.usage.input, got.usage.output, got.usage.cached) == (107, 9, 7)


def test_usage_without_an_amount_is_none(decode):
    events = [start(input_tokens=0, output_tokens=0), *text(0, "x"), *end(output_tokens=0)]
    assert decode(*events).usage is None


def test_tokens_read_from_the_cache_or_written_to_it_are_input(decode):
    usage = decode(
        start(input_tokens=3, cache_read_input_tokens=50, cache_creation_input_tokens=7),
        *end(output_tokens=9),
    ).usage
    assert (usage.input, usage.cached, usage.cache_written) == (60, 50, 7)
    assert usage.raw["input_tokens"] == 3


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [
        ("overloaded_error", True),
        ("api_error", True),
        ("rate_limit_error", True),
        ("invalid_request_error", False),
    ],
)
def test_an_error_in_the_stream_is_a_fault(decode, kind, retryable):
    got = decode(
        start(), *text(0, "half"), event("error", error={"type": kind, "message": "Overloaded"})
    )
    (fault,) = got.faults
    assert (fault.code, fault.message, fault.retryable) == ("provider", "Overloaded", retryable)


@pytest.mark.parametrize(
    "frame",
    [
        'data: {"error": {"type": "api_error", "message": "boom"}}\n\n',
        'data: {"detail": "boom"}\n\n',
        'event: error\ndata: "boom"\n\n',
    ],
)
@pytest.mark.parametrize("beginning", [(), (start(), *text(0, "half"))])
def test_an_error_without_a_type_is_no_answer(total, beginning, frame):
    decoder = AnthropicDecoder()
    got = total([*decoder.feed((sse(*beginning) + frame).encode()), *decoder.close()])
    assert [fault.message for fault in got.faults] == ["boom"]


def test_a_whole_answer_may_hold_its_text_without_blocks(total):
    decoder = AnthropicDecoder()
    answer = {"type": "message", "role": "assistant", "content": "yes", "stop_reason": "end_turn"}
    got = total([*decoder.feed(json.dumps(answer).encode()), *decoder.close()])
    assert (got.text, got.faults) == ("yes", [])


def test_a_cut_closes_blocks_and_calls_as_incomplete(decode):
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    got = decode(
        start(),
        *text(0, "x")[:-1],
        *block(1, use, {"type": "input_json_delta", "partial_json": '{"x": 1}'}, stop=False),
    )
    assert got.of(parts.Close) == [parts.Close("0", incomplete=True)]
    assert [c.incomplete for c in got.of(parts.Call)] == [True]
    assert [f.code for f in got.faults] == ["cut"]


def test_a_delta_without_a_start_makes_its_block(decode):
    assert (
        decode(
            start(),
            event("content_block_delta", index=3, delta={"type": "text_delta", "text": "x"}),
            *end(),
        ).text
        == "x"
    )


def test_input_without_a_start_is_kept_but_never_goes_back(decode):
    deltas = [{"type": "input_json_delta", "partial_json": p} for p in ('{"x"', ": 1}")]
    got = decode(start(), *block(0, {}, *deltas)[1:], *end("tool_use"))
    assert got.extras == {"input_json": {"type": "input_json", "input": {"x": 1}}}
    assert (got.of(parts.Resend), got.calls) == ([], [])


def test_a_start_without_the_stop_before_closes_that_block(decode):
    got = decode(start(), *text(0, "a")[:-1], *text(0, "b"), *end())
    assert got.text == "ab"
    assert len(got.of(parts.Close)) == 2


def test_an_answer_without_a_stream_is_read_whole(total):
    message = {
        "type": "message",
        "id": "m",
        "model": "c",
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "S"},
            {"type": "text", "text": "yes"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        ],
    }
    decoder = AnthropicDecoder()
    decoder.feed(json.dumps(message).encode())
    got = total(decoder.close())
    assert (got.text, got.reasoning, got.finish, got.usage.output) == ("yes", "hm", "tool_use", 2)
    assert got.of(parts.Call)[0].args == {"x": 1}


HOSTILE = [
    'data: {"type": "content_block_start"}\n\ndata: {"type": "content_block_delta"}\n\ndata: {"type": "message_start", "message": 3}\n\n',
    'data: {"type": "content_block_start", "index": [1], "content_block": 3}\n\n',
    'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": 3, "name": [], "input": 7}}\n\n',
    'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 3}}\n\n',
    'data: {"type": "content_block_delta", "index": 0, "delta": {"type": [], "x": {}}}\n\n',
    'data: {"type": "message_delta", "delta": [], "usage": 3}\n\ndata: {"type": "content_block_stop", "index": 9}\n\n',
    'data: {"type": "message_delta", "usage": {"input_tokens": "x", "output_tokens": [1]}}\n\n',
    "data: []\n\ndata: 3\n\ndata: {}\n\nevent: error\ndata: {}\n\n",
    'data: {"type": 3}\n\ndata: {"type": "message", "content": [3, null]}\n\n',
]


@pytest.mark.parametrize("data", HOSTILE)
def test_no_exception_escapes_whatever_comes(data):
    decoder = AnthropicDecoder()
    decoder.feed(data.encode())
    decoder.feed(sse(start(), *text(0, "x")).encode())
    decoder.close()


# --- what is sent


def request(*messages, **fields):
    return Request(messages=messages, **fields)


SPEC = ToolSpec("f", "does f", {"type": "object"})


def test_system_messages_become_the_system_text():
    body = encode(
        request(
            text_message("system", "A"), text_message("user", "hi"), text_message("system", "B")
        ),
        "c",
    )
    assert body["system"] == "A\n\nB"
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert (body["max_tokens"], body["stream"]) == (8192, True)


def test_tools_are_sent_only_natively():
    hi = text_message("user", "hi")
    assert encode(request(hi, tools=(SPEC,), native_tools=True), "c")["tools"] == [
        {"name": "f", "description": "does f", "input_schema": {"type": "object"}}
    ]
    assert "tools" not in encode(request(hi, tools=(SPEC,)), "c")


def test_a_turn_with_thoughts_calls_and_results_goes_back():
    signed = ThoughtBlock("hm", {"provider": "anthropic", "signature": "SIG"})
    redacted = ThoughtBlock(
        "", {"provider": "anthropic", "block": {"type": "redacted_thinking", "data": "B"}}
    )
    server = OpaqueBlock("anthropic", {"type": "server_tool_use", "id": "s"})
    body = encode(
        request(
            text_message("user", "hi"),
            Message(
                "assistant",
                (
                    signed,
                    redacted,
                    server,
                    TextBlock("I look."),
                    CallBlock("call 1", "f", {"x": 1}),
                ),
            ),
            Message("tool", (TextBlock("note"), ResultBlock("call 1", "f", "no", error=True))),
            text_message("user", "and?"),
        ),
        "c",
    )
    assert body["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "B"},
        {"type": "server_tool_use", "id": "s"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {"x": 1}},
    ]
    assert body["messages"][2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "call_1", "content": "no", "is_error": True},
            {"type": "text", "text": "note"},
            {"type": "text", "text": "and?"},
        ],
    }


def test_what_belongs_to_others_and_empty_texts_are_left_out():
    foreign = (
        ThoughtBlock("hm"),
        ThoughtBlock("hm", {"provider": "openai", "field": "x"}),
        OpaqueBlock("openai", {"type": "x"}),
        OpaqueBlock("anthropic", "no object"),
    )
    body = encode(
        request(
            text_message("user", "hi"),
            Message("assistant", (*foreign, TextBlock(" \n"))),
            text_message("user", "?"),
        ),
        "c",
    )
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": "?"}]}
    ]


def test_a_last_assistant_text_has_no_white_space_at_its_end():
    assert (
        encode(request(text_message("user", "hi"), text_message("assistant", "So: \n")), "c")[
            "messages"
        ][1]["content"][0]["text"]
        == "So:"
    )


def test_an_image_is_sent():
    body = encode(request(Message("user", (ImageBlock("image/png", "QUJD"),))), "c")
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert body["messages"][0]["content"] == [{"type": "image", "source": source}]


@pytest.mark.parametrize(
    ("settings", "adaptive", "expected"),
    [
        ({"temperature": 0.5, "top_p": 1}, False, {"temperature": 0.5, "top_p": 1}),
        ({"stop": "x"}, False, {"stop_sequences": ["x"]}),
        ({"max_tokens": 10}, False, {"max_tokens": 10}),
        (
            {"reasoning": 2000},
            False,
            {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 10192},
        ),
        ({"reasoning": 10}, False, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        (
            {"reasoning": "low", "max_tokens": 1500},
            False,
            {"thinking": {"type": "enabled", "budget_tokens": 1499}, "max_tokens": 1500},
        ),
        ({"reasoning": False}, False, {"thinking": {"type": "disabled"}}),
        (
            {"reasoning": "high"},
            True,
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        ),
        (
            {"extra_body": {"max_tokens": 7, "metadata": {}}},
            False,
            {"max_tokens": 7, "metadata": {}},
        ),
    ],
)
def test_settings_in_the_words_of_the_api(settings, adaptive, expected):
    body = encode(request(text_message("user", "hi"), settings=settings), "c", adaptive=adaptive)
    assert body | expected == body


@pytest.mark.parametrize("settings", [{"seed": 1}, {"reasoning": "low", "max_tokens": 1000}])
def test_what_the_api_cannot_do_is_a_usage_error(settings):
    with pytest.raises(UsageError):
        encode(request(text_message("user", "hi"), settings=settings), "c")


# --- over HTTP


def stream(*events):
    return lambda peer: peer.stream(sse(*events))


def test_the_key_and_the_version_are_sent(serve, collect, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    server = serve(stream(start(), *text(0, "hi"), *end()))
    assert collect(provider("c", base_url=server.url)).text == "hi"
    asked = server.asked[0]
    assert asked.path == "/v1/messages"
    assert (asked.headers["x-api-key"], asked.headers["anthropic-version"]) == (
        "sk-ant-0123456789",
        "2023-06-01",
    )


def test_without_a_key_nothing_is_sent_to_anthropic(caught):
    _, error = caught(provider("c"))
    assert error.code == "no_key"
    assert "Set ANTHROPIC_API_KEY or use `%agent key anthropic`" in str(error)


def test_a_paused_turn_is_continued_and_looks_like_one(serve, collect):
    server_tool = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    server = serve(
        stream(
            start(input_tokens=10),
            *text(0, "One. "),
            *block(1, server_tool),
            *end("pause_turn", output_tokens=3),
        ),
        stream(start(input_tokens=20), *text(0, "Two."), *end("end_turn", output_tokens=4)),
    )
    got = collect(provider("c", base_url=server.url))
    assert (got.text, [p.reason for p in got.of(parts.Finish)]) == ("One. Two.", ["end_turn"])
    assert (got.usage.input, got.usage.output) == (30, 7)
    assert {p.block for p in got.of(parts.Text)} == {"0", "1.0"}
    assert len(got.of(parts.Head)) == 1
    assert server.asked[1].body["messages"][-1] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "One. "}, {**server_tool}],
    }


def test_each_continuation_of_a_paused_turn_is_announced_beforehand(serve, request_of):
    paused = stream(start(), *text(0, "One. "), *end("pause_turn"))
    server = serve(paused)

    async def main():
        model, seen = provider("c", base_url=server.url), []
        async with aclosing(model.stream(request_of("hi"))) as batches:
            async for batch in batches:
                if batch == [parts.Continued()]:
                    seen.append(len(server.asked))
                if len(seen) == 3:
                    break
        await model.aclose()
        return seen

    assert anyio.run(main) == [1, 2, 3]


def test_the_limit_of_turns_holds_for_an_answer_paused_again_and_again(serve):
    server = serve(stream(start(), *text(0, "One. "), *end("pause_turn")))
    run = Agent(provider("c", base_url=server.url), limits={"turns": 2}, secrets={}).run_sync("hi")
    assert (run.status, run.answer.split(), len(server.asked)) == ("limit", ["One.", "One."], 2)


def test_calls_of_a_continued_turn_have_indexes_of_their_own(serve, collect):
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    server = serve(
        stream(start(), *block(0, use), *end("pause_turn")),
        stream(start(), *block(0, {**use, "id": "b"}), *end("tool_use")),
    )
    assert [
        (c.call_id, c.index) for c in collect(provider("c", base_url=server.url)).of(parts.Call)
    ] == [("a", 0), ("b", 1)]


def test_a_model_that_thinks_adaptively_is_asked_again(serve, collect, request_of):
    refusal = '{"type": "error", "error": {"type": "invalid_request_error", "message": "use thinking.type adaptive"}}'
    server = serve(lambda peer: peer.reply(400, refusal), stream(start(), *text(0, "x"), *end()))
    model = provider("c", base_url=server.url)
    ask = request_of("hi", settings={"reasoning": "low"})
    assert collect(model, ask).text == "x"
    collect(model, ask)
    assert [peer.body["thinking"]["type"] for peer in server.asked] == [
        "enabled",
        "adaptive",
        "adaptive",
    ]


def test_an_overload_before_the_answer_may_be_retried(serve, caught):
    error = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    got, fault = caught(provider("c", base_url=serve(stream(start(), event("ping"), error)).url))
    assert (got.parts, fault.retryable) == ([], True)


def test_citations_that_are_no_list_are_replaced():
    begin = {"type": "text", "text": "a", "citations": 3}
    delta = {"type": "citations_delta", "citation": {"url": "u"}}
    decoder = AnthropicDecoder()
    for each in block(0, begin, delta):
        decoder.feed(f"data: {json.dumps(each)}\n\n".encode())
    assert decoder.content[0]["citations"] == [{"url": "u"}]
