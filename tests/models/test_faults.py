"""Refusals in words, bodies that are none, and the gate between the two kinds of fault."""

import pytest
from helpers.printing import print_every_way

from agent_nb.models import parts
from agent_nb.models.http import body
from agent_nb.models.http.body import Body
from agent_nb.models.http.errors import (
    Peer,
    blot_out_secrets,
    find_body_message,
    find_message,
    make_refusal,
)
from agent_nb.models.http.stream import Gate, Post


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"error": {"message": "m"}}', "m"),
        ('{"error": "m"}', "m"),
        ('{"message": "m"}', "m"),
        ('{"detail": "m"}', "m"),
        ('{"detail": [{"msg": "a"}, {"msg": "b"}]}', "a; b"),
        ('[{"error": {"message": "m", "status": "X"}}]', "m"),
        ('{"errors": ["a", "b"]}', "a; b"),
        ('{"error": {"code": 7}}', '{"code": 7}'),
        ("plain", "plain"),
        ("", ""),
        ("\xff", "ÿ"),
        ("{}", "{}"),
        ("<!doctype html><p>", "the server answered with a web page; is the base URL right?"),
        ("x" * 900, "x" * 500),
    ],
)
def test_the_words_of_an_error_body(text, words):
    assert find_body_message(text.encode()) == words


@pytest.mark.parametrize("nested", ['{"error": ' * 900 + '"x"' + "}" * 900, "[" * 900 + "]" * 900])
def test_a_deeply_nested_error_body_is_a_refusal_all_the_same(nested):
    fault = make_refusal(400, {}, f'{{"error": {nested}}}'.encode(), Peer())
    assert (fault.status, fault.code) == (400, "provider")


@pytest.mark.parametrize("value", [None, 3, [], {}, {"message": None}, {"error": {}}])
def test_an_error_without_words_has_none_or_its_own_form(value):
    assert isinstance(find_message(value), str)


@pytest.mark.parametrize(
    "text",
    [
        "key sk-proj-abcdefgh12345678 bad",
        "key gsk_abcdefgh12345678 bad",
        "key sk-ab********7890 bad",
        "key AIzaSyA1234567890abcdefghijklmnopqrstuv bad",
        "key sk-ant-api03-abcdef_gh bad",
    ],
)
def test_keys_are_blotted_out(text):
    assert blot_out_secrets(text) == "key *** bad"


def test_a_given_secret_is_blotted_out():
    assert blot_out_secrets("token hunter22 bad", ["hunter22", ""]) == "token *** bad"


def test_a_refused_key_that_was_given_asks_about_access():
    error = make_refusal(403, {}, b"", Peer(provider="openai", has_key=True))
    assert "Does this key have access" in str(error)


@pytest.mark.parametrize(
    ("provider", "url", "who"),
    [
        ("openai", "https://api.openai.com/v1", "OpenAI"),
        ("openai", "http://lab:8000/v1", "lab:8000"),
        ("anthropic", "https://api.anthropic.com", "Anthropic"),
        ("openrouter", "https://openrouter.ai/api/v1", "OpenRouter"),
        ("lab", "http://lab:8000/v1", "lab"),
        ("", "", "The server"),
    ],
)
def test_a_rate_limit_names_who_was_asked(provider, url, who):
    error = make_refusal(
        429, {}, b'{"error": {"message": "Slow down."}}', Peer(provider=provider, url=url)
    )
    assert (str(error), error.brief) == (
        f"Rate limit at {who} (429): Slow down.",
        f"Rate limit at {who} (429)",
    )


def test_a_wait_that_is_too_long_is_said():
    error = make_refusal(429, {"retry-after": "1800"}, b"", Peer(provider="groq"))
    assert str(error) == "Rate limit at Groq (429). It asks to wait 30 minutes."


def test_a_body_of_blanks_without_end_takes_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    reader = Body()
    for _ in range(4_000):
        assert list(reader.feed(b" \n" * 32_000)) == []
    assert [frame.data for frame in reader.feed(b"data: a\n\n")] == ["a"]


def test_the_raw_body_is_kept_without_secrets():
    error = make_refusal(400, {}, b'{"error": "hunter22"}', Peer(secrets=("hunter22",)))
    assert error.raw == '{"error": "***"}'


def test_a_frame_beyond_the_limit_is_a_fault(monkeypatch):
    from agent_nb.wire.sse import SSEDecoder

    reader = Body()
    reader._sse = SSEDecoder(limit=100)
    reader.feed(b"data: " + b"x" * 200)
    assert reader.feed(b"x" * 10) == []
    assert reader.fault.code == "limit"
    assert reader.close() == []


def test_a_json_body_beyond_the_limit_is_a_fault(monkeypatch):
    monkeypatch.setattr(body, "LARGEST", 100)
    reader = Body()
    for _ in range(3):
        assert reader.feed(b"{" + b" " * 60) == []
    assert reader.fault.code == "limit"


@pytest.mark.parametrize("blank", [b"", b" \r\n", b"\xef\xbb\xbf"])
def test_white_space_before_the_body_does_not_matter(blank):
    reader = Body()
    assert reader.feed(blank) == []
    assert [f.data for f in reader.feed(b"data: x\n\n")] == ["x"]


HEAD, TEXT = parts.Head(200, "m"), parts.Text("x")
PASSING = parts.Fault("provider", "busy", retryable=True)


def test_nothing_goes_out_before_the_answer_begins():
    gate = Gate()
    assert gate.pass_parts([HEAD, parts.Usage(1)]) == []
    assert gate.pass_parts([TEXT]) == [HEAD, parts.Usage(1), TEXT]
    assert gate.error is None


def test_a_fault_before_the_answer_may_be_retried():
    gate = Gate()
    assert gate.pass_parts([HEAD, PASSING]) == []
    assert gate.error.retryable


def test_a_fault_with_the_first_text_comes_after_it_and_may_not_be_retried():
    gate = Gate()
    assert gate.pass_parts([HEAD, TEXT, PASSING]) == [HEAD, TEXT]
    assert not gate.error.retryable


def test_an_empty_answer_goes_out_at_its_end():
    gate = Gate()
    assert gate.pass_parts([HEAD, parts.Usage(1)]) == []
    assert gate.release() == [HEAD, parts.Usage(1)]


def test_a_request_and_its_peer_are_printed_without_keys():
    key = "correct-horse"
    post = Post(path="/x", body=b"", headers={"x-key": key}, peer=Peer(secrets=(key,)))
    assert key not in print_every_way(post) + print_every_way(post.peer)
