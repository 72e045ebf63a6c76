"""What is sent to chat completions, and how a server's refusals are answered."""

import json
import threading

import anyio
import pytest

from agent_nb.errors import UsageError
from agent_nb.models.anthropic import provider as anthropic
from agent_nb.models.chat.request import encode
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
from agent_nb.models.openai import provider
from agent_nb.models.parts import Text

SPEC = ToolSpec("f", "does f", {"type": "object"})
DONE = 'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def body_of(*messages, **fields):
    options = {
        k: fields.pop(k)
        for k in ("grammar_taken", "router", "usage", "max_tokens_field")
        if k in fields
    }
    if "grammar_taken" in options:
        options["grammar"] = options.pop("grammar_taken")
    return encode(
        Request(messages=messages or (text_message("user", "hi"),), **fields), "m", **options
    )


def test_a_plain_request():
    assert body_of(
        text_message("system", "S"), text_message("user", "hi"), text_message("assistant", "ho")
    ) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "ho"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_calls_and_results_go_back_each_for_its_call():
    turn = Message(
        "assistant",
        (TextBlock(""), CallBlock("a", "f", {"x": 1}, '{"x":1}'), CallBlock("b", "f", {})),
    )
    results = Message("tool", (ResultBlock("a", "f", "1"), ResultBlock("b", "f", "no", error=True)))
    assert body_of(turn, results)["messages"] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: no"},
    ]


@pytest.mark.parametrize(
    ("raw", "args", "sent"),
    [
        ('{"x": "a\nb"}', {"x": "a\nb"}, '{"x": "a\\nb"}'),
        ('{"x":1}  ', {"x": 1}, '{"x":1}  '),
        pytest.param('{"x": ' + "[" * 5000 + "]" * 5000 + "}", {}, "{}", id="nested"),
    ],
)
def test_arguments_go_back_as_json_that_every_server_reads(raw, args, sent):
    turn = Message("assistant", (CallBlock("a", "f", args, raw),))
    assert body_of(turn)["messages"][0]["tool_calls"][0]["function"]["arguments"] == sent


def test_arguments_that_were_changed_go_back_as_they_were_understood():
    turn = Message("assistant", (CallBlock("a", "f", {"x": 2}, '{"x":1}'),))
    assert body_of(turn)["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"x": 2}'


@pytest.mark.parametrize("content", ["Error: no", '{"error": 1}', "error in x"])
def test_a_failure_that_says_so_is_not_marked_twice(content):
    assert (
        body_of(Message("tool", (ResultBlock("a", "f", content, error=True),)))["messages"][0][
            "content"
        ]
        == content
    )


def test_reasoning_goes_back_with_calls_under_its_own_name():
    thought = ThoughtBlock("hm", {"provider": "openai", "field": "reasoning_content"})
    turn = Message(
        "assistant", (thought, ThoughtBlock("m", thought.opaque), CallBlock("a", "f", {}))
    )
    assert body_of(turn)["messages"][0]["reasoning_content"] == "hmm"


def test_reasoning_does_not_go_back_with_an_answer():
    thought = ThoughtBlock("hm", {"provider": "openai", "field": "reasoning_content"})
    assert body_of(Message("assistant", (thought, TextBlock("yes"))))["messages"] == [
        {"role": "assistant", "content": "yes"}
    ]


@pytest.mark.parametrize(
    "opaque",
    [
        None,
        {"provider": "anthropic", "signature": "S"},
        {"provider": "openai", "field": "content"},
        3,
    ],
)
def test_reasoning_of_others_is_left_out(opaque):
    made = body_of(Message("assistant", (ThoughtBlock("hm", opaque), CallBlock("a", "f", {}))))[
        "messages"
    ][0]
    assert made.keys() == {"role", "content", "tool_calls"}


def test_what_must_go_back_with_the_calls_is_put_where_it_was():
    details = [{"type": "reasoning.encrypted", "data": "B"}]
    payload = {
        "message": {"reasoning_details": details},
        "tool_calls": {"a": {"extra_content": {"s": 1}}},
    }
    thought = ThoughtBlock("hm", {"provider": "openai", "field": "reasoning"})
    made = body_of(
        Message("assistant", (thought, OpaqueBlock("openai", payload), CallBlock("a", "f", {})))
    )["messages"][0]
    assert made["reasoning_details"] == details
    assert made["tool_calls"][0]["extra_content"] == {"s": 1}
    assert "reasoning" not in made


def test_an_image_is_sent_as_a_data_url():
    made = body_of(Message("user", (TextBlock("what?"), ImageBlock("image/png", "QUJD"))))[
        "messages"
    ][0]["content"]
    assert made == [
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
    ]


def test_tools_are_sent_only_natively():
    assert body_of(tools=(SPEC,), native_tools=True)["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}},
        }
    ]
    assert "tools" not in body_of(tools=(SPEC,))


def test_a_grammar_is_sent_only_to_a_server_that_takes_one():
    assert body_of(grammar="start: x", grammar_taken=True)["grammar"] == "start: x"
    assert "grammar" not in body_of(grammar="start: x")


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        (
            {"temperature": 0, "seed": 1, "top_p": 0.5},
            {},
            {"temperature": 0, "seed": 1, "top_p": 0.5},
        ),
        ({"stop": "x"}, {}, {"stop": ["x"]}),
        ({"stop": ["x", "y"]}, {}, {"stop": ["x", "y"]}),
        ({"max_tokens": 5}, {}, {"max_tokens": 5}),
        (
            {"max_tokens": 5},
            {"max_tokens_field": "max_completion_tokens"},
            {"max_completion_tokens": 5},
        ),
        ({"reasoning": "high"}, {}, {"reasoning_effort": "high"}),
        ({"reasoning": 3000}, {}, {"reasoning_effort": "medium"}),
        ({"reasoning": False}, {}, {"reasoning_effort": "none"}),
        ({"reasoning": 3000}, {"router": True}, {"reasoning": {"max_tokens": 3000}}),
        ({"reasoning": True}, {"router": True}, {"reasoning": {"effort": "medium"}}),
        ({"reasoning": 0}, {"router": True}, {"reasoning": {"effort": "none"}}),
        ({"extra_body": {"model": "other", "top_k": 3}}, {}, {"model": "other", "top_k": 3}),
        ({"temperature": None}, {}, {}),
    ],
)
def test_settings_in_the_words_of_the_api(settings, options, expected):
    made = body_of(settings=settings, **options)
    assert made | expected == made


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"temprature": 1}, "Did you mean 'temperature'"),
        ({"zzz": 1}, "Settings: temperature"),
        ({"temperature": "hot"}, "temperature cannot be 'hot'"),
        ({"seed": True}, "seed cannot be True"),
        ({"reasoning": "deep"}, "none, minimal, low"),
        ({"stop": ["a", 1]}, "stop cannot be"),
    ],
)
def test_a_wrong_setting_is_a_usage_error(settings, words):
    with pytest.raises(UsageError, match=words):
        body_of(settings=settings)


def refuse(message, status=400):
    return lambda peer: peer.reply(status, json.dumps({"error": {"message": message}}))


def accept(peer):
    peer.stream(DONE)


def test_a_server_that_does_not_know_stream_options_is_asked_without(serve, collect):
    server = serve(refuse("Unrecognized request argument supplied: stream_options", 422), accept)
    model = provider("m", base_url=server.url)
    assert collect(model).text == "x"
    collect(model)
    assert ["stream_options" in peer.body for peer in server.asked] == [True, False, False]


def test_a_server_with_another_name_for_the_token_limit_is_asked_by_that(
    serve, collect, request_of
):
    server = serve(
        refuse("Unsupported parameter: 'max_tokens' is not supported with this model."), accept
    )
    assert (
        collect(
            provider("m", base_url=server.url), request_of("hi", settings={"max_tokens": 9})
        ).text
        == "x"
    )
    assert server.asked[1].body["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("field", "settings", "words"),
    [
        ("stream_options", {}, "Unrecognized request argument supplied: stream_options"),
        ("max_tokens", {"max_tokens": 9}, "Unsupported: max_tokens; use max_completion_tokens"),
    ],
)
def test_requests_at_once_all_leave_out_what_was_refused(serve, request_of, field, settings, words):
    together = threading.Barrier(3)

    def judge(peer):
        if field not in peer.body:
            accept(peer)
            return
        together.wait(10)  # all are sent before the first is refused
        peer.reply(400, json.dumps({"error": {"message": words}}))

    model, texts = provider("m", base_url=serve(judge).url), []

    async def ask():
        async for batch in model.stream(request_of("hi", settings=settings)):
            texts.extend(part.text for part in batch if isinstance(part, Text))

    async def main():
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
        await model.aclose()

    anyio.run(main)
    assert texts == ["x"] * 3


@pytest.mark.parametrize("make", [provider, anthropic])
@pytest.mark.parametrize("words", ["temperature must be at most 1", "too long: adaptive filters"])
def test_a_refusal_of_anything_else_is_not_repeated(serve, caught, request_of, make, words):
    def refuse_with_echo(peer):
        detail = [{"loc": ["body", "temperature"], "msg": words, "input": peer.body}]
        peer.reply(422, json.dumps({"detail": detail}))

    server = serve(refuse_with_echo)
    caught(
        make("m", base_url=server.url), request_of("adaptive thinking", settings={"max_tokens": 9})
    )
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"message": "a very long reason, " * 30 + "stream_options is unknown"},
        {"message": "refused", "details": [{"field": "stream_options"}]},
        {"message": "refused", "cause": {"message": "unknown: stream_options"}},
    ],
)
def test_a_field_is_left_out_wherever_a_refusal_names_it(serve, collect, error):
    server = serve(lambda peer: peer.reply(400, json.dumps({"error": error})), accept)
    assert collect(provider("m", base_url=server.url)).text == "x"


NO_TOOLS = [
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (404, "No endpoints found that support tool use."),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (500, "tools param requires --jinja flag"),
    (422, "body.tools: Extra inputs are not permitted"),
    (400, "Function calling is not supported by this model"),
    (400, "Unrecognized request argument supplied: tools"),
]


@pytest.mark.parametrize(("status", "message"), NO_TOOLS)
def test_a_server_that_refuses_tools_is_recognised(serve, caught, request_of, status, message):
    server = serve(refuse(message, status))
    _, error = caught(
        provider("m", base_url=server.url), request_of("hi", tools=(SPEC,), native_tools=True)
    )
    assert (error.code, error.retryable) == ("no_tools", False)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("message", "tools"),
    [
        ("does not support tools", False),
        ("Invalid schema for function 'f': missing field", True),
        ("too long", True),
    ],
)
def test_other_refusals_are_not_about_tools(serve, caught, request_of, message, tools):
    _, error = caught(
        provider("m", base_url=serve(refuse(message)).url),
        request_of("hi", tools=(SPEC,), native_tools=tools),
    )
    assert error.code == "provider"


def test_without_a_key_nothing_is_sent_to_openai(caught):
    _, error = caught(provider("gpt"))
    assert error.code == "no_key"
    assert "Set OPENAI_API_KEY or use `%agent key openai`" in str(error)


def test_another_server_needs_no_key(serve, collect, monkeypatch):
    server = serve(accept)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert collect(provider("m")).text == "x"
    assert "authorization" not in server.asked[0].headers


def test_headers_of_an_endpoint_are_sent(serve, collect):
    server = serve(accept)
    collect(provider("m", base_url=server.url, headers={"x-team": "blue"}))
    assert server.asked[0].headers["x-team"] == "blue"
