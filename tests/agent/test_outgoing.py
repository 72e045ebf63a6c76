"""The last look at a request: every text without keys, what must come back exact as it was, and
what cannot be filtered refused.
"""

import base64
import json
import re
from pathlib import Path

import msgspec
import pytest

import agent_nb
from agent_nb import Agent, Scripted
from agent_nb.agent.outgoing import redact_request, redact_tool, require_no_keys
from agent_nb.errors import UsageError
from agent_nb.models.chat import request as chat_request
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
)
from agent_nb.models.messages_api import request as anthropic_request
from agent_nb.models.responses import request as responses_request
from agent_nb.wire.redact import Redaction

KEY = "value-of-a-secret-key"
REDACTION = Redaction({"MY_KEY": KEY})
MARK = "[redacted MY_KEY]"
SIGNED = f"EqQB{KEY}"  # whatever a signature looks like, it is not ours to change
PIXELS = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(200))).decode()


def sent(*blocks, **fields):
    return redact_request(Request(messages=(Message("user", blocks),), **fields), REDACTION)


def schema(**parameters):
    return redact_tool(
        ToolSpec(
            "look", "Look.", {"type": "object", "properties": parameters, "required": [*parameters]}
        ),
        REDACTION,
    ).parameters


@pytest.mark.parametrize(
    "block",
    [
        TextBlock(KEY),
        ThoughtBlock(KEY),
        CallBlock("1", "look", {"signature": KEY, KEY: [KEY]}, json.dumps({"signature": KEY})),
        ResultBlock("1", "look", KEY, value={"data": KEY}),
        OpaqueBlock("anthropic", {"type": "server_tool_use", "input": {"query": KEY}}),
    ],
    ids=lambda block: type(block).__name__,
)
def test_every_text_of_a_message_is_filtered(block):
    made = msgspec.json.encode(sent(block)).decode()
    assert KEY not in made
    assert MARK in made


@pytest.mark.parametrize(
    "block",
    [
        ThoughtBlock("hm", {"provider": "anthropic", "signature": SIGNED}),
        OpaqueBlock("anthropic", {"type": "redacted_thinking", "data": SIGNED}),
        OpaqueBlock("openai-responses", {"type": "reasoning", "encrypted_content": SIGNED}),
        OpaqueBlock(
            "openai",
            {"tool_calls": {"c1": {"extra_content": {"google": {"thought_signature": SIGNED}}}}},
        ),
        OpaqueBlock("openai-responses", {"type": "image_generation_call", "result": PIXELS}),
        ImageBlock("image/jpeg", base64.b64encode(KEY.encode()).decode()),
    ],
    ids=[
        "signature",
        "redacted thinking",
        "encrypted reasoning",
        "thought signature",
        "generated picture",
        "picture",
    ],
)
def test_what_is_signed_or_encrypted_or_media_stays_to_the_byte(block):
    assert sent(block).messages[0].blocks == (block,)


@pytest.mark.parametrize(
    "encode", [anthropic_request.encode, chat_request.encode, responses_request.encode]
)
def test_no_body_of_a_provider_holds_a_key(encode):
    blocks = (TextBlock(KEY), CallBlock("1", "look", {"at": KEY}, json.dumps({"at": KEY})))
    messages = (
        Message("system", (TextBlock(KEY),)),
        Message("user", (TextBlock(KEY),)),
        Message("assistant", blocks),
    )
    result = Message("tool", (ResultBlock("1", "look", KEY),))
    spec = ToolSpec("look", KEY, {"properties": {"at": {"default": KEY, "description": KEY}}})
    made = redact_request(
        Request(messages=(*messages, result), tools=(spec,), native_tools=True), REDACTION
    )
    assert KEY not in json.dumps(encode(made, "m"))


def test_a_default_that_holds_a_key_is_left_out_and_the_others_stay():
    made = schema(
        key={"type": "string", "default": KEY},
        headers={"default": {"Authorization": [KEY]}},
        at={"type": "integer", "default": 3},
        none={"default": None},
    )
    kept = {
        "key": {"type": "string"},
        "headers": {},
        "at": {"type": "integer", "default": 3},
        "none": {"default": None},
    }
    assert made["properties"] == kept
    assert MARK not in json.dumps(made)


def test_values_that_hold_a_key_are_left_out_of_enumerations_and_examples():
    made = schema(
        a={"enum": [KEY, "x"]},
        b={"enum": [KEY]},
        c={"examples": ["y", {"k": KEY}]},
        d={"const": KEY},
        e={"pattern": KEY},
    )
    assert made["properties"] == {
        "a": {"enum": ["x"]},
        "b": {},
        "c": {"examples": ["y"]},
        "d": {},
        "e": {},
    }


def test_words_of_a_schema_keep_the_mark():
    made = schema(a={"description": f"not {KEY}", "anyOf": [{"title": KEY}]})
    assert made["properties"]["a"] == {"description": f"not {MARK}", "anyOf": [{"title": MARK}]}


def test_parameters_may_be_named_as_the_words_of_a_schema():
    names = {
        name: {"type": "string"}
        for name in ("default", "enum", "const", "pattern", "examples", "properties")
    }
    assert schema(**names)["properties"] == names


def test_a_schema_without_keys_is_the_same():
    given = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/K"},
            "b": {"items": {"enum": [1, None]}, "default": []},
        },
        "required": ["a"],
        "$defs": {"K": {"enum": ["x"], "title": "K"}},
        "additionalProperties": False,
    }
    assert redact_tool(ToolSpec("look", "Look.", given), REDACTION).parameters == given


def test_stop_texts_are_filtered_and_extra_body_is_not_touched():
    made = sent(settings={"stop": [KEY], "temperature": 0, "extra_body": {"a": 1}})
    assert made.settings == {"stop": [MARK], "temperature": 0, "extra_body": {"a": 1}}


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"user": KEY}, "extra_body.user"),
        ({"a": [{"b": f"x {KEY}"}]}, "extra_body.a[0].b"),
        ({"a": {KEY: 1}}, "extra_body.a"),
        ({KEY: 1}, "extra_body"),
    ],
)
def test_a_key_in_extra_body_is_an_error_that_hides_the_key(extra, path):
    with pytest.raises(UsageError) as failure:
        require_no_keys("m", [], {"extra_body": extra}, REDACTION)
    assert f"There is a key in {path}," in str(failure.value)
    assert KEY not in str(failure.value)


@pytest.mark.parametrize(
    ("model", "name", "place"), [(f"openai/{KEY}", "look", "model"), ("m", KEY, "tool")]
)
def test_a_key_in_a_name_that_must_be_exact_is_an_error(model, name, place):
    with pytest.raises(UsageError, match=place):
        require_no_keys(model, [ToolSpec(name, "", {})], {}, REDACTION)


def test_nothing_is_sent_when_a_key_is_where_it_cannot_be_filtered():
    model = Scripted(["never"])
    with pytest.raises(UsageError, match=r"extra_body\.user"):
        Agent(model, settings={"extra_body": {"user": KEY}}, secrets={"MY_KEY": KEY}).run_sync("go")


class Recorder(Scripted):
    """A scripted model that keeps what it was asked."""

    def stream(self, request):
        self.asked = [*getattr(self, "asked", []), request]
        return super().stream(request)


@pytest.mark.parametrize("dialect", ["native", "xml", "section"])
@pytest.mark.parametrize("shots", [False, True])
def test_instructions_shots_and_grammar_are_made_of_tools_without_keys(dialect, shots):
    def look(key: str = KEY):
        """Look."""

    model = Recorder(["done"])
    model.start = lambda: model  # the same object for each run
    model.shots = model.grammar = shots
    Agent(model, [look], dialect=dialect, secrets={"MY_KEY": KEY}).run_sync("go")
    asked = msgspec.json.encode(model.asked[0]).decode()
    assert KEY not in asked
    assert MARK not in asked


def test_a_key_that_becomes_known_later_is_filtered_from_the_next_run_on(monkeypatch):
    monkeypatch.chdir("/")
    agent = Agent(Scripted(["done", "done"]))
    assert agent.run_sync(f"use {KEY}").prompt == f"use {KEY}"
    monkeypatch.setenv("MY_KEY", KEY)
    assert agent.run_sync(f"use {KEY}").prompt == f"use {MARK}"


def test_every_request_is_made_where_it_is_filtered():
    """A tripwire: whoever makes or sends a request elsewhere has to think of the filter."""
    root = Path(agent_nb.__file__).parent
    files = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in root.rglob("*.py")
    }
    makes = {
        name
        for name, text in files.items()
        if re.search(r"(?<!class )\bRequest\(\n?\s*messages", text)
    }
    sends = {
        name
        for name, text in files.items()
        if re.search(r"model\.stream\(", text) and not name.startswith("models/")
    }
    assert makes == {"agent/request.py", "agent/compaction.py"}
    assert sends == {"agent/sender.py", "agent/compaction.py"}
    assert files["agent/request.py"].count("redact_request(") == 2
