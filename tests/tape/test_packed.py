"""The record of a model call: what is stored of it, and what comes back."""

import json
import math
import random
from contextlib import suppress

import pytest
from helpers.examples import count_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tape.answers import (
    chat_chunks,
    chat_whole,
    google_chunks,
    google_whole,
    message_events,
    message_whole,
    numbered,
    response_events,
    sse,
)

from agent_nb.errors import UsageError
from agent_nb.record.packing import Home, Packer, Payloads
from agent_nb.record.record import events_of, run_record
from agent_nb.record.signing import is_intact
from agent_nb.tape import exchange as exchange_module
from agent_nb.tape.columns import pack_columns, unpack_columns
from agent_nb.tape.conversations import Conversations, unpack_body
from agent_nb.tape.exchange import Body, Exchange, Request, Response
from agent_nb.tape.packed import ExchangePacker, read_exchange, texts_of, unpack_exchange
from agent_nb.tape.prices import Prices
from agent_nb.tape.redaction import redact_exchange
from agent_nb.tape.references import Dereferencer, References, zip_text
from agent_nb.tape.run_log import find_results, make_log
from agent_nb.wire import dumps

HOME = Home("/home/ann")
STREAM = {"content-type": "text/event-stream"}
WORDS = [f"word{n} " for n in range(2000)]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


def exchange(path, body, data, content_type="text/event-stream", **fields):
    request = Request(provider="openai", path=path, body=Body.read(json.dumps(body).encode()))
    response = Response(
        headers={"content-type": content_type}, body=Body.read(data, content_type), **fields
    )
    return Exchange(request=request, response=response)


def packed(made):
    """Return the exchange's log and packed form."""
    log = make_log(made, began=1.0, ended=2.0, results={}, prices=Prices())
    return log, ExchangePacker(HOME).pack(made, log)


def size(value):
    return len(dumps(value))


CASES = {
    "chat": ("/chat/completions", sse(*chat_chunks(WORDS)), "text/event-stream"),
    "chat with a call": (
        "/chat/completions",
        sse(*chat_chunks(["Well, "], call=("add", ['{"a": ', "1}"]))),
        "text/event-stream",
    ),
    "chat, whole": (
        "/chat/completions",
        json.dumps(chat_whole("Hello you")).encode(),
        "application/json",
    ),
    "messages": ("/v1/messages", sse(*message_events(WORDS), names=True), "text/event-stream"),
    "messages, whole": (
        "/v1/messages",
        json.dumps(message_whole("Hi")).encode(),
        "application/json",
    ),
    "responses": (
        "/responses",
        sse(*numbered(response_events(WORDS, {"instructions": "Be brief. " * 20})), names=True),
        "text/event-stream",
    ),
    "google": (
        "/v1beta/models/g:streamGenerateContent",
        sse(*google_chunks(WORDS, call=("add", ['{"a": 1}'])), done=False),
        "text/event-stream",
    ),
    "google, whole": (
        "/v1beta/models/g:generateContent",
        json.dumps(google_whole(["Hi"])).encode(),
        "application/json",
    ),
    "an error": ("/chat/completions", b'{"error": {"message": "no"}}', "application/json"),
    "no model call": ("/models", b'{"data": [{"id": "x"}]}', "application/json"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_exchange_is_read_again(name):
    path, data, content_type = CASES[name]
    made = exchange(
        path, {"model": "m", "messages": [{"role": "user", "content": "hi"}]}, data, content_type
    )
    log, form = packed(made)
    record = json.loads(
        json.dumps(run_record(log, exchange=form, home="/home/ann"), sort_keys=True)
    )
    assert is_intact(record)
    assert read_exchange(record) == made


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "most"), [("chat", 1.6), ("messages", 1.6), ("responses", 1.6), ("google", 1.7)]
)
def test_a_stream_costs_little_more_than_its_text(name, most):
    path, data, content_type = CASES[name]
    fields = {"instructions": "Be brief. " * 20}
    log, form = packed(exchange(path, {"model": "m", "input": "hi", **fields}, data, content_type))
    text = sum(len(event.content) for event in log.of("respond"))
    assert text == sum(map(len, WORDS))
    assert (text + size(form.value["response"])) / text < most


def test_the_log_of_an_exchange_with_google_has_all_that_it_says():
    args = {"a": 1, "b": 2}
    chunks = google_chunks(["It ", "is."], call=("add", ['{"a": 1, "b": 2}']))
    body = {"contents": [{"role": "user", "parts": [{"text": "What is 1 + 2?"}]}]}
    made = exchange(CASES["google"][0], body, sse(*chunks, done=False))
    turns = [{"parts": [{"functionCall": {"name": "add", "args": args}}]} for _ in range(2)]
    turns[0]["parts"][0]["functionCall"]["args"] = {"a": 2}
    returned = [{"functionResponse": {"name": "add", "response": {"result": n}}} for n in (2, 3)]
    results = find_results([{"contents": [*turns, {"parts": returned}]}])
    log = make_log(made, began=1.0, ended=2.0, results=results, prices=Prices())
    assert (log[0].model, log[1].content) == ("openai/g", "What is 1 + 2?")
    assert [event.content for event in log.of("think", "respond")] == ["Hm.", "It is."]
    assert [event.args for event in log.of("call")] == [args]
    assert [event.content for event in log.of("result")] == [{"result": 3}]
    (metric,) = log.of("metric")
    assert (metric.step.input, metric.step.output, metric.step.reasoning) == (11, 7, 2)
    assert log[-1].status == "ok"


def test_a_stream_of_google_has_ended_with_its_reason():
    chunks = list(google_chunks(["It "]))
    bodies = [Body.read(sse(*c, done=False), "text/event-stream") for c in (chunks, chunks[:-1])]
    assert [body.is_ended for body in bodies] == [True, False]


@pytest.mark.parametrize(
    ("text", "kind"), [(r"\ud83d", "text"), (r"\uDE00!", "text"), (r"\ud83d\ude00", "json")]
)
def test_half_a_character_is_no_json(text, kind):
    assert Body.read(f'{{"a": "{text}"}}'.encode()).kind == kind


@pytest.mark.parametrize(("data", "kind"), [(b'{"error":"a"}', "json"), (b": wait\n\n", "text")])
def test_a_body_without_a_chunk_is_kept_whatever_its_type_says(data, kind):
    body = Body.read(data, "text/event-stream")
    assert (body.kind, b"".join(body.pieces())) == (kind, data)


def test_padding_is_served_empty():
    made = exchange("/chat/completions", {}, sse(*chat_chunks(["a", "b", "c", "d", "e"])))
    assert {c["data"].get("obfuscation") for c in made.response.body.value if "data" in c} == {
        "",
        None,
    }


def test_the_log_of_an_exchange_has_prompt_answer_calls_results_and_usage():
    call = ("add", ['{"a": 1}'])
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "What is it?"}]}
    made = exchange("/chat/completions", body, sse(*chat_chunks(["Well"], call=call)))
    results = find_results(
        [{"messages": [{"role": "tool", "tool_call_id": "call_1", "content": "2"}]}]
    )
    log = make_log(made, began=1.0, ended=2.0, results=results, prices=Prices())
    kinds = [event.type for event in log]
    assert kinds == [
        "run_start",
        "user",
        "node",
        "respond",
        "call",
        "result",
        "metric",
        "node",
        "end",
    ] or (
        sorted(kinds)
        == sorted(
            [
                "run_start",
                "user",
                "node",
                "respond",
                "call",
                "execute",
                "result",
                "metric",
                "node",
                "end",
            ]
        )
    )
    assert log[0].model == "openai/gpt-5-mini"
    assert log[1].content == "What is it?"
    assert log.of("result")[0].content == "2"
    assert log.of("metric")[0].step.input == 11


def test_a_call_without_a_result_was_not_answered_here():
    made = exchange("/chat/completions", {}, sse(*chat_chunks([], call=("add", ["{}"]))))
    log = make_log(made, began=1.0, ended=2.0, results={}, prices=Prices())
    assert log.of("result")[0].status == "cancelled"


def test_a_conversation_costs_little_more_than_its_last_body():
    conversations, rng, messages, last, payloads, inline = (
        Conversations(HOME),
        random.Random(1),
        [],
        {},
        {},
        0,
    )
    tools = [{"name": f"t{n}", "description": "what it does " * 20} for n in range(3)]
    for _ in range(20):
        messages.append({"role": "user", "content": "".join(rng.choices("abcdef ", k=600))})
        last = {"model": "gpt-5-mini", "messages": list(messages), "tools": tools}
        form = conversations.pack(last)
        inline += size(form)
        needed = Payloads.find_needed_keys(form, conversations.payloads)
        payloads |= {key: conversations.payloads[key] for key in needed}
        assert unpack_body(form, Payloads(payloads), HOME) == last
        messages.append({"role": "assistant", "content": "".join(rng.choices("abcdef ", k=600))})
    assert inline + size(payloads) < 1.5 * size(last)


def test_a_mark_that_moves_in_the_last_messages_continues_the_conversation():
    conversations = Conversations(HOME)
    one = [
        {"role": "user", "content": "a" * 50},
        {"role": "user", "content": "b", "cache_control": {"x": 1}},
    ]
    two = [
        one[0],
        {"role": "user", "content": "b"},
        {"role": "user", "content": "c", "cache_control": {"x": 1}},
    ]
    conversations.pack({"messages": one})
    form = conversations.pack({"messages": two})
    link = conversations.payloads[form["lists"]["messages"]["$payload"]]
    assert link["take"] == 1
    assert unpack_body(form, Payloads(conversations.payloads), HOME)["messages"] == two


@pytest.mark.property
@settings(max_examples=count_examples(200), deadline=None)
@given(st.lists(JSON, max_size=12), st.lists(JSON, max_size=3))
def test_any_chunks_are_read_again(chunks, repeated):
    chunks = [{"data": chunk} for chunk in [*chunks, *repeated * 5]]
    references = References(
        ["a text of the log that is long"], {"field": "another text, as long as it"}
    )
    columns = json.loads(json.dumps(pack_columns(chunks, references, []), sort_keys=True))
    read = Dereferencer(
        ["a text of the log that is long"],
        {"field": "another text, as long as it"},
        columns.get("seen"),
    )
    assert unpack_columns(columns, read) == chunks


def nest(value, levels):
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "chunks",
    [
        [{"id": 2**64 + 1 + n} for n in range(5)],
        [{"id": n << 65} for n in range(5)],
        [nest(n, 105) for n in range(5)],
        [nest(f"{n}", 200) for n in range(5)],
        [nest({}, 199)] * 5,
    ],
)
def test_large_numbers_and_deep_chunks_are_read_again(chunks):
    columns = json.loads(json.dumps(pack_columns(chunks, References([], {}), [])))
    assert unpack_columns(columns, Dereferencer([], {}, [])) == chunks


@pytest.mark.property
@settings(max_examples=count_examples(100), deadline=None)
@given(
    JSON,
    st.lists(JSON, max_size=6),
    st.sampled_from(["$text", "$field", "$seen", "$is", "$payload", "x"]),
)
def test_any_exchange_is_read_again_or_not_replayed(value, messages, name):
    body = {"model": value, "messages": messages, "tools": {name: value}}
    data = sse({"id": value, name: value}, {name: 0}, *[{"delta": str(n)} for n in range(9)])
    made = exchange("/chat/completions", body, data)
    log, form = packed(made)
    record = json.loads(json.dumps(run_record(log, exchange=form)))
    read = read_exchange(record)
    assert read == made or not read.is_replayable


@pytest.mark.property
@settings(max_examples=count_examples(60), deadline=None)
@given(st.data())
def test_a_damaged_exchange_is_an_error_or_another_value(data):
    log, form = packed(
        exchange("/chat/completions", {"messages": [1, "x" * 300]}, sse(*chat_chunks(WORDS[:40])))
    )
    places = []

    def collect(value):
        if isinstance(value, dict | list):
            for key in value if isinstance(value, dict) else range(len(value)):
                places.append((value, key))
                collect(value[key])

    collect(form.value)
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(JSON)
    with suppress(UsageError):
        assert unpack_exchange(form.value, form.payloads, texts_of(log), HOME).request


def link(conversations, **fields):
    packer = Packer(HOME)
    key = packer.store_payload(fields)
    conversations |= packer.payloads
    return key


HOSTILE = {
    "a circle": (
        {"2:" + "0" * 64: {"after": {"$payload": "2:" + "0" * 64}, "take": 0, "add": []}},
        "2:" + "0" * 64,
    ),
    "a missing key": ({}, "2:" + "1" * 64),
    "a wrong hash": ({"2:" + "2" * 64: {"add": ["hi"]}}, "2:" + "2" * 64),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_list_of_messages_is_an_error(name):
    payloads, key = HOSTILE[name]
    with pytest.raises(UsageError, match="cannot be read"):
        unpack_body({"lists": {"messages": {"$payload": key}}}, Payloads(payloads), HOME)


@pytest.mark.parametrize("take", [10**9, -1, True, "1", None])
def test_a_huge_or_wrong_take_is_an_error(take):
    payloads = {}
    first = link(payloads, add=["one"])
    last = link(payloads, after=first, take=take, add=[])
    with pytest.raises(UsageError, match="cannot be read"):
        unpack_body({"lists": {"messages": last}}, Payloads(payloads), HOME)


@pytest.mark.parametrize(
    ("shape", "column"),
    [
        ([0] * 20, {"from": 0, "by": 1}),
        (0, {"from": 0, "by": 10**400}),
        (0, {"from": 1, "by": 0}),
    ],
    ids=["many columns", "long numbers", "no step"],
)
def test_columns_that_would_fill_the_memory_are_an_error(shape, column):
    group = {"shape": shape, "columns": [column] * 20}
    packed = {"order": [[0, 4_000_000]], "groups": [group]}
    with pytest.raises(UsageError, match="cannot be read"):
        unpack_columns(packed, Dereferencer([], {}, []))


def test_a_chunk_that_is_no_object_is_an_error():
    log, form = packed(exchange("/chat/completions", {}, sse({"a": 1})))
    form.value["response"]["body"] = {"stream": {"order": [[-1, 1]], "singles": [5], "groups": []}}
    with pytest.raises(UsageError, match="a chunk of its answer is not an object"):
        read_exchange(run_record(log, exchange=form))


def test_a_number_in_a_compressed_answer_that_json_cannot_hold_is_an_error():
    log, form = packed(exchange("/chat/completions", {}, sse({"a": 1})))
    group = {"shape": {"a": 0}, "columns": [{"is": math.inf}]}
    answer = {"stream": {"order": [[0, 4]], "singles": [], "groups": [group]}}
    form.value["response"]["body"] = {"zip": zip_text(json.dumps(answer))}
    with pytest.raises(UsageError, match="cannot be read"):
        read_exchange(run_record(log, exchange=form))


def test_an_endless_list_of_messages_is_an_error():
    payloads, last = {}, None
    for _ in range(2100):
        last = link(payloads, **({"after": last, "take": 0} if last else {}), add=[])
    with pytest.raises(UsageError, match="does not end"):
        unpack_body({"lists": {"messages": last}}, Payloads(payloads), HOME)


@pytest.mark.parametrize(
    "seen",
    [
        [{"$seen": 0}],
        [{"$seen": 1}, {"$seen": 0}],
        [["x" * 1000] * 9, *[[{"$seen": n}] * 9 for n in range(9)]],
        [json.loads("[" * 300 + "]" * 300)],
    ],
    ids=["itself", "a circle", "a billion laughs", "deep"],
)
def test_hostile_references_are_an_error(seen):
    with pytest.raises(UsageError, match="cannot be read"):
        Dereferencer([], {}, seen).unpack({"$seen": len(seen) - 1})


def test_a_key_in_pieces_leaves_the_stream_and_the_request():
    key = "sk-proj-" + "A1b2C3d4" * 6
    pieces = [key[n : n + 5] for n in range(0, len(key), 5)]
    body = {"messages": [{"role": "user", "content": f"My key is {key}."}]}
    made = redact_exchange(
        exchange("/chat/completions", body, sse(*chat_chunks(["It is ", *pieces, "."]))), {}, {}
    )
    log, form = packed(made)
    record = run_record(log, exchange=form)
    assert key not in json.dumps(record)
    assert key[:20] not in json.dumps(record)
    assert read_exchange(record) == made
    assert log.of("respond")[0].content.startswith("It is [redacted")


def test_home_folders_of_bodies_and_answers_are_hidden():
    body = {"messages": [{"role": "user", "content": "/home/ann/data.csv"}]}
    made = exchange("/chat/completions", body, sse(*chat_chunks(["/home", "/ann", "/x"])))
    log, form = packed(made)
    record = run_record(log, exchange=form, home="/home/ann")
    assert "/home/ann" not in json.dumps(record)
    assert read_exchange(record).request.body.value["messages"][0]["content"].endswith("/data.csv")


def test_the_size_limit_cuts_no_exchange():
    made = exchange(
        "/chat/completions", {"messages": ["x" * 5000]}, sse(*chat_chunks(["y" * 5000]))
    )
    log, form = packed(made)
    record = run_record(log, exchange=form, cap=100)
    assert [e["payload"] for e in record["events"] if e["type"] == "extension"] == [form.value]
    assert read_exchange(record) is None  # its text was cut, so it is not served


def test_an_exchange_that_is_too_large_is_known_by_its_digest():
    made = exchange("/chat/completions", {"n": [str(n) * 9 for n in range(400_000)]}, sse({"a": 1}))
    log, form = packed(made)
    assert size(form.value) < 2000
    assert not read_exchange(run_record(log, exchange=form)).is_replayable


@pytest.mark.parametrize("depth", [149, 150, 151, 250, 500, 2000])
def test_json_that_is_nested_deeply_is_packed_whole(depth):
    deep = b"[{}," + b"[" * (depth - 1) + b"]" * depth
    body = Body.read(deep)
    assert body.kind == ("json" if depth <= 150 else "text")
    made = Exchange(
        request=Request(provider="openai", path="/rerank", body=body),
        response=Response(headers={"content-type": "application/json"}, body=body),
    )
    log, form = packed(made)
    again = read_exchange(json.loads(json.dumps(run_record(log, exchange=form))))
    assert (again.request.body, again.response.body) == (body, body)
    assert again.is_replayable


@pytest.mark.parametrize("depth", [400, 600])
def test_an_answer_that_is_nested_too_deeply_is_known_by_its_digest(depth, monkeypatch):
    monkeypatch.setattr(exchange_module, "_DEEPEST", 1000)
    data = b"[" * depth + b"]" * depth
    made = exchange("/rerank", {"query": "a"}, data, "application/json")
    assert made.response.body.kind == "json"
    form = ExchangePacker(HOME).pack(made, [])
    assert list(form.value["response"]["body"]) == ["digest"]


def test_other_readers_see_the_run_and_no_unpacked_request():
    made = exchange(
        "/chat/completions", {"messages": [{"content": "x" * 400}]}, sse(*chat_chunks(["Hi"]))
    )
    log, form = packed(made)
    record = run_record(log, exchange=form)
    assert record["tape"] == 1
    assert [e.type for e in events_of(record) if e.type != "extension"] == [e.type for e in log]
