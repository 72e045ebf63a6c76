"""OpenAI's Responses API: what comes back, and what is sent."""

import json

import pytest

from agent_nb.errors import UsageError
from agent_nb.models import parts
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
from agent_nb.models.openai_responses import provider
from agent_nb.models.responses.decoder import ResponsesDecoder
from agent_nb.models.responses.request import encode


def event(kind, place=None, **fields):
    return {
        "type": f"response.{kind}",
        **({} if place is None else {"output_index": place}),
        **fields,
    }


CREATED = event("created", response={"id": "resp_1", "model": "gpt", "output": []})
USAGE = {
    "input_tokens": 10,
    "output_tokens": 4,
    "input_tokens_details": {"cached_tokens": 6},
    "output_tokens_details": {"reasoning_tokens": 3},
}


def completed(*output, status="completed", **fields):
    return event(
        status, response={"status": status, "output": list(output), "usage": USAGE, **fields}
    )


def message(place, *pieces, **fields):
    item = {"type": "message", "id": f"msg_{place}", "role": "assistant", **fields}
    whole = {**item, "content": [{"type": "output_text", "text": "".join(pieces)}]}
    return [
        event("output_item.added", place, item={**item, "content": []}),
        *(event("output_text.delta", place, content_index=0, delta=p) for p in pieces),
        event("output_text.done", place, content_index=0, text="".join(pieces)),
        event("output_item.done", place, item=whole),
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
        decoder = ResponsesDecoder()
        out = []
        for i in range(0, len(data), size or len(data)):
            out += decoder.feed(data[i : i + (size or len(data))])
        return total([*out, *decoder.close()])

    return run


def test_text_is_emitted_once_and_closed(decode):
    got = decode(CREATED, *message(0, "Hel", "lo"), completed())
    assert [p for p in got.parts if isinstance(p, parts.Text | parts.Close)] == [
        parts.Text("Hel", "0.0"),
        parts.Text("lo", "0.0"),
        parts.Close("0.0"),
    ]
    assert (got.finish, got.faults) == ("completed", [])
    assert (
        got.usage.input,
        got.usage.output,
        got.usage.cached,
        got.usage.reasoning,
        got.usage.raw,
    ) == (10, 4, 6, 3, USAGE)
    assert got.of(parts.Head) == [parts.Head(200, "gpt", "resp_1")]


@pytest.mark.parametrize("size", [1, 3, 50])
def test_the_parts_do_not_depend_on_the_chunking(decode, size):
    assert (
        decode(CREATED, *message(0, "é🙂"), completed(), size=size).parts
        == decode(CREATED, *message(0, "é🙂"), completed()).parts
    )


@pytest.mark.parametrize(
    ("kind", "index", "block"),
    [
        ("reasoning_text", "content_index", "0.0"),
        ("reasoning_summary_text", "summary_index", "0.s0"),
    ],
)
def test_reasoning_is_a_thought_and_its_item_goes_back(decode, kind, index, block):
    item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "BLOB", "summary": []}
    got = decode(
        CREATED,
        event("output_item.added", 0, item={"type": "reasoning", "id": "rs_1"}),
        event(f"{kind}.delta", 0, **{index: 0}, delta="hm"),
        event(f"{kind}.done", 0, **{index: 0}, text="hm"),
        event("output_item.done", 0, item=item),
        completed(item),
    )
    assert got.of(parts.Thought) == [parts.Thought("hm", block)]
    assert got.of(parts.Close) == [parts.Close(block)]
    assert got.of(parts.Resend) == [parts.Resend("openai-responses", item)]


def test_each_part_of_a_summary_is_a_block(decode):
    deltas = [
        event("reasoning_summary_text.delta", 0, summary_index=n, delta=f"part {n}") for n in (0, 1)
    ]
    got = decode(
        CREATED, *deltas, event("output_item.done", 0, item={"type": "reasoning"}), completed()
    )
    assert [(p.text, p.block) for p in got.of(parts.Thought)] == [
        ("part 0", "0.s0"),
        ("part 1", "0.s1"),
    ]
    assert {p.block for p in got.of(parts.Close)} == {"0.s0", "0.s1"}


def call(place, call_id="call_1", arguments='{"x": 1}', deltas=('{"x"', ": 1}")):
    item = {"type": "function_call", "id": f"fc_{place}", "call_id": call_id, "name": "f"}
    return [
        event("output_item.added", place, item={**item, "arguments": ""}),
        *(event("function_call_arguments.delta", place, delta=d) for d in deltas),
        event("function_call_arguments.done", place, arguments=arguments),
        event("output_item.done", place, item={**item, "arguments": arguments}),
    ]


def test_a_call_streams_and_is_complete_with_its_item(decode):
    got = decode(CREATED, *call(0), *call(1, "call_2"), completed())
    assert got.calls == [("call_1", "f", '{"x": 1}'), ("call_2", "f", '{"x": 1}')]
    assert [c.index for c in got.of(parts.Call)] == [0, 1]
    assert [d.text for d in got.of(parts.CallDelta) if d.index == 0] == ["", '{"x"', ": 1}"]


def test_interleaved_items_are_kept_apart(decode):
    first, second = call(0), call(1, "call_2")
    mixed = [e for pair in zip(first, second, strict=True) for e in pair]
    assert [c[0] for c in decode(CREATED, *mixed, completed()).calls] == ["call_1", "call_2"]


def test_a_call_that_was_not_streamed_is_emitted_whole(decode):
    got = decode(CREATED, *call(0, deltas=()), completed())
    assert got.calls == [("call_1", "f", '{"x": 1}')]
    assert "".join(d.text for d in got.of(parts.CallDelta)) == '{"x": 1}'


def test_items_of_server_tools_go_back_in_order(decode):
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    got = decode(
        CREATED,
        event("output_item.added", 0, item={**search, "status": "in_progress"}),
        event("web_search_call.searching", 0),
        event("output_item.done", 0, item=search),
        *message(1, "x"),
        completed(search),
    )
    assert [p.payload for p in got.of(parts.Resend)] == [search]
    assert got.extras == {}


def test_the_phase_of_a_message_goes_back(decode):
    assert decode(CREATED, *message(0, "I look.", phase="commentary"), completed()).of(
        parts.Resend
    )[0].payload == {"phase": "commentary"}


def test_sources_and_unknown_events_are_extras(decode):
    got = decode(
        CREATED,
        event("output_text.annotation.added", 0, annotation={"url": "u"}),
        event("brand.new", x=1),
        event("brand.new", x=2),
        completed(),
    )
    assert got.extras["annotation"] == {"url": "u"}
    assert got.extras["response.brand.new"]["x"] == 1
    assert len(got.of(parts.Extra)) == 2


def test_what_was_never_streamed_is_read_from_the_end(decode):
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "yes"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ]
    got = decode(CREATED, completed(*output))
    assert (got.reasoning, got.text, got.calls) == ("hm", "yes", [("c", "f", "{}")])
    assert (
        len(got.of(parts.CallDelta)) == 1
        or "".join(d.text for d in got.of(parts.CallDelta)) == "{}"
    )


def test_an_answer_without_a_stream_is_read_whole(total):
    response = {
        "object": "response",
        "id": "r",
        "model": "m",
        "status": "completed",
        "output": [],
        "usage": USAGE,
    }
    response["output"] = [
        {"type": "message", "content": [{"type": "output_text", "text": "whole"}]}
    ]
    decoder = ResponsesDecoder()
    decoder.feed(json.dumps(response).encode())
    got = total(decoder.close())
    assert (got.text, got.finish, got.usage.input, got.faults) == ("whole", "completed", 10, [])


def test_an_incomplete_response_says_why(decode):
    got = decode(
        CREATED,
        *message(0, "x"),
        completed(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    assert got.finish == "incomplete"
    assert got.extras == {"incomplete_details": {"reason": "max_output_tokens"}}


@pytest.mark.parametrize(
    "last",
    [
        completed(status="failed", error={"code": "server_error", "message": "broke"}),
        {"type": "error", "code": "server_error", "message": "broke", "param": None},
        {"type": "error", "error": {"code": "server_error", "message": "broke"}},
    ],
)
def test_a_failure_is_one_fault(decode, last):
    (fault,) = decode(CREATED, *message(0, "x"), last).faults
    assert (fault.code, fault.message, fault.retryable) == ("provider", "broke", True)


def test_usage_without_an_amount_is_none(decode):
    usage = {"input_tokens": 0, "output_tokens": None, "input_tokens_details": {"cached_tokens": 0}}
    assert decode(CREATED, *message(0, "x"), completed(usage=usage)).usage is None


@pytest.mark.parametrize(
    "last",
    [
        {"type": "response.failed", "response": {"error": None}},
        completed(status="failed", error=None),
        completed(status="cancelled"),
    ],
)
def test_a_failure_without_words_is_a_fault(decode, last):
    assert [fault.code for fault in decode(CREATED, *message(0, "x"), last).faults] == ["provider"]


def test_a_refusal_is_text(decode):
    assert (
        decode(
            CREATED, event("refusal.delta", 0, content_index=0, delta="I cannot."), completed()
        ).text
        == "I cannot."
    )


def refused(*deltas):
    """Return an answer with a text and a refusal, of which only the `deltas` are streamed."""
    content = [{"type": "output_text", "text": "Yes, "}, {"type": "refusal", "refusal": "but no."}]
    item = {"type": "message", "content": content}
    return [
        CREATED,
        *(event(kind, 0, content_index=number, delta=text) for kind, number, text in deltas),
        event("refusal.done", 0, content_index=1, refusal="but no."),
        event("output_item.done", 0, item=item),
        completed(item),
    ]


TEXT, REFUSAL = "output_text.delta", "refusal.delta"


@pytest.mark.parametrize(
    "deltas",
    [
        [],
        [(TEXT, 0, "Yes, ")],
        [(TEXT, 0, "Yes, "), (REFUSAL, 1, "but "), (REFUSAL, 1, "no.")],
        [(REFUSAL, 1, "but no.")],
        [(TEXT, 0, "Yes, "), (REFUSAL, 1, "")],
    ],
)
def test_content_that_was_not_streamed_comes_with_its_item(decode, deltas):
    assert decode(*refused(*deltas)).text in ("Yes, but no.", "but no.Yes, ")


@pytest.mark.parametrize("numbers", [(0, 0), (1, 1), (None, None), (None, 1), (1, 2)])
def test_content_under_a_wrong_number_is_emitted_once(decode, numbers):
    deltas = zip((TEXT, REFUSAL), numbers, ("Yes, ", "but no."), strict=True)
    assert decode(*refused(*deltas)).text == "Yes, but no."


def test_a_cut_closes_blocks_and_calls_as_incomplete(decode):
    got = decode(CREATED, *message(0, "x")[:2], *call(1)[:2])
    assert got.of(parts.Close) == [parts.Close("0.0", incomplete=True)]
    assert [c.incomplete for c in got.of(parts.Call)] == [True]
    assert [f.code for f in got.faults] == ["cut"]


HOSTILE = [
    'data: {"type": "response.output_text.delta"}\n\ndata: {"type": "response.output_item.done"}\n\n',
    'data: {"type": "response.output_item.added", "item": 3, "output_index": [1]}\n\n',
    'data: {"type": "response.function_call_arguments.delta", "delta": 3}\n\n',
    'data: {"type": "response.completed", "response": 3}\n\n',
    'data: {"type": "response.completed", "response": {"output": [3, {"type": "message", "content": 4}], "usage": 3}}\n\n',
    'data: {"type": "response.output_item.done", "item": {"type": "reasoning", "summary": [[[[1]]]]}}\n\n',
    "data: []\n\ndata: 3\n\ndata: {}\n\nevent: error\ndata: {}\n\n",
    'data: {"type": 3}\n\n',
]


@pytest.mark.parametrize("data", HOSTILE)
def test_no_exception_escapes_whatever_comes(data):
    decoder = ResponsesDecoder()
    decoder.feed(data.encode())
    decoder.feed(sse(CREATED, *message(0, "x")).encode())
    decoder.close()


# --- what is sent


def request(*messages, **fields):
    return Request(messages=messages, **fields)


def test_a_request_keeps_nothing_at_the_server():
    body = encode(request(text_message("system", "S"), text_message("user", "hi")), "gpt")
    assert body == {
        "model": "gpt",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "S",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        ],
    }


def test_a_turn_goes_back_in_order():
    reasoning = {
        "type": "reasoning",
        "id": "rs",
        "encrypted_content": "B",
        "summary": [],
        "status": None,
    }
    turn = Message(
        "assistant",
        (
            OpaqueBlock("openai-responses", reasoning),
            ThoughtBlock("hm"),
            TextBlock("I look."),
            OpaqueBlock("openai-responses", {"phase": "commentary"}),
            CallBlock("c", "f", {"x": 1}),
        ),
    )
    results = Message("tool", (ResultBlock("c", "f", "no", error=True),))
    assert encode(request(turn, results), "gpt")["input"] == [
        {"type": "reasoning", "id": "rs", "encrypted_content": "B", "summary": []},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look."}],
            "phase": "commentary",
        },
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"x": 1}'},
        {"type": "function_call_output", "call_id": "c", "output": "Error: no"},
    ]


@pytest.mark.parametrize(
    ("item", "sent"),
    [
        ({"type": "reasoning", "id": "rs", "summary": []}, []),
        (
            {"type": "reasoning", "id": "rs", "content": [{"text": "hm"}]},
            [{"type": "reasoning", "content": [{"text": "hm"}]}],
        ),
        ({"type": "web_search_call", "id": "ws"}, [{"type": "web_search_call", "id": "ws"}]),
    ],
)
def test_only_items_that_the_server_can_understand_go_back(item, sent):
    assert (
        encode(request(Message("assistant", (OpaqueBlock("openai-responses", item),))), "gpt")[
            "input"
        ]
        == sent
    )


def test_what_belongs_to_others_is_left_out():
    blocks = (OpaqueBlock("anthropic", {"type": "x"}), OpaqueBlock("openai-responses", "no object"))
    foreign = Message("assistant", (*blocks, TextBlock("")))
    assert encode(request(foreign), "gpt")["input"] == []


def test_tools_and_images_are_sent():
    body = encode(
        request(
            Message("user", (ImageBlock("image/png", "QUJD"),)),
            tools=(ToolSpec("f", "d", {}),),
            native_tools=True,
        ),
        "gpt",
    )
    assert body["tools"] == [
        {"type": "function", "name": "f", "description": "d", "parameters": {}, "strict": False}
    ]
    assert body["input"][0]["content"] == [
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    ]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            {"temperature": 0, "top_p": 1, "max_tokens": 5},
            {"temperature": 0, "top_p": 1, "max_output_tokens": 5},
        ),
        ({"reasoning": "low"}, {"reasoning": {"effort": "low", "summary": "auto"}}),
        ({"extra_body": {"store": True}}, {"store": True}),
    ],
)
def test_settings_in_the_words_of_the_api(settings, expected):
    body = encode(request(text_message("user", "hi"), settings=settings), "gpt")
    assert body | expected == body


@pytest.mark.parametrize("name", ["stop", "seed"])
def test_what_the_api_cannot_do_is_a_usage_error(name):
    with pytest.raises(UsageError, match=f"no setting {name}"):
        encode(
            request(text_message("user", "hi"), settings={name: 1 if name == "seed" else "x"}),
            "gpt",
        )


# --- over HTTP


def test_what_was_asked_on_the_users_behalf_is_left_out_when_refused(serve, collect, request_of):
    def refuse(message):
        return lambda peer: peer.reply(400, json.dumps({"error": {"message": message}}))

    server = serve(
        refuse("Encrypted content is not supported with this model"),
        refuse("Your organization must be verified to generate reasoning summaries"),
        lambda peer: peer.stream(sse(CREATED, *message(0, "yes"), completed())),
    )
    assert (
        collect(
            provider("m", base_url=server.url), request_of("hi", settings={"reasoning": "low"})
        ).text
        == "yes"
    )
    last = server.asked[-1]
    assert last.path == "/v1/responses"
    assert "include" not in last.body
    assert last.body["reasoning"] == {"effort": "low"}


ECHO = {"input": "hi", "include": ["reasoning.encrypted_content"], "summary": "an unknown one"}


@pytest.mark.parametrize(
    ("left_out", "error"),
    [
        ("", {"message": "Your request must include at least one message."}),
        ("", {"message": "Invalid input: 'Summarize the report' is too long."}),
        ("", {"message": "Invalid input: 'Sum up the encrypted content' is too long."}),
        ("", [{"loc": ["body", "top_p"], "msg": "Extra inputs are not permitted", "input": ECHO}]),
        ("include", [{"loc": ["body", "include"], "msg": "Extra inputs are not permitted"}]),
        ("include", {"message": "Unrecognized request argument supplied: include"}),
        ("include", {"message": "The include parameter is not supported by this server."}),
        ("include", {"message": "Invalid value: 'reasoning.encrypted_content'.", "param": "x"}),
        ("include", {"message": "body.include[0]: Input should be 'message.output_text.logprobs'"}),
        ("include", {"message": "Unsupported parameter", "param": "include"}),
        ("include", {"message": "The encrypted content gAA== could not be verified."}),
        ("summary", {"message": "Unsupported parameter: 'reasoning.summary' is not supported."}),
        ("summary", {"message": "Additional properties ('summary' was unexpected)"}),
        ("summary", {"message": "Summaries are not available for this model"}),
    ],
)
def test_only_the_refusal_of_a_feature_leaves_it_out(serve, caught, request_of, left_out, error):
    server = serve(lambda peer: peer.reply(400, json.dumps({"error": error})))
    caught(provider("m", base_url=server.url), request_of("hi", settings={"reasoning": "low"}))
    has = [("include" in p.body, "summary" in p.body["reasoning"]) for p in server.asked]
    assert has == [
        (True, True),
        *([(left_out != "include", left_out != "summary")] * bool(left_out)),
    ]


def test_the_key_of_openai_is_used(serve, collect, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    server = serve(lambda peer: peer.stream(sse(CREATED, *message(0, "yes"), completed())))
    collect(provider("m", base_url=server.url))
    assert server.asked[0].headers["authorization"] == "Bearer sk-0123456789"


def test_without_a_key_nothing_is_sent_to_openai(caught):
    _, error = caught(provider("m"))
    assert (error.code, "%agent key openai`" in str(error)) == ("no_key", True)
