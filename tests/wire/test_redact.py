"""The secret filter: nothing of a key passes, however it is cut; everything else passes as it is,
at once.
"""

import base64
import html
import json
import string
import textwrap
from itertools import pairwise
from urllib.parse import quote, urlencode

import pytest
from helpers.examples import count_examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_nb.wire.key_forms import environment_secrets
from agent_nb.wire.key_search import LONGEST_KEY
from agent_nb.wire.redact import Redaction, Redactor, redact_text, redact_value

ENV = {
    "OPENAI_API_KEY": "sk-proj-Abc123_def456-Ghi789jkl012",
    "DB_PASSWORD": "correct horse battery staple",
    "PEM_KEY": "line one of it\nline two of it",
    "QUOTED_TOKEN": 'with "quotes" and \\ in it',
}
KEYS = [
    "sk-abcdefghijklmnopqrstuvwx1234",
    "sk-ant-api03-AbCdEf_012345-GhIjKl6789",
    "sk-proj-AAAABBBBCCCCDDDDEEEEFFFF",
    "sk-or-v1-0123456789abcdef0123456789abcdef",
    "gsk_AbCdEfGhIjKlMnOpQrSt0123",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "hf_AbCdEfGhIjKlMnOpQrStUv0123",
    "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "gho_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuv",
    "xoxb-123456789012-abcdefABCDEF",
    "AKIAIOSFODNN7EXAMPLE",
    "glpat-AbCdEf0123456789GhIj",
    "pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDA",
    "r8_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789a",
    "nvapi-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "xai-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
]
ALL = [*ENV.values(), *KEYS]


def feed(text, cuts, secrets=ENV):
    redactor = Redactor(secrets)
    edges = [0, *sorted(cuts), len(text)]
    return "".join([*(redactor.feed(text[a:b]) for a, b in pairwise(edges)), redactor.close()])


def leaks(text, key, size=6):
    return [key[n : n + size] for n in range(len(key) - size + 1) if key[n : n + size] in text]


@pytest.mark.few(50)
@pytest.mark.parametrize("key", ALL)
@pytest.mark.parametrize(
    "around", ["{}", "key: {} ok", '"{}"', "a={};", "({}).", "\n{}\n", "密钥{}是"]
)
def test_a_key_is_replaced_whatever_stands_around_it(key, around):
    assert not leaks(redact_text(around.format(key), ENV), key)


@pytest.mark.parametrize("key", ALL)
def test_a_key_split_anywhere_leaves_nothing(key):
    text = f"the key is {key}, keep it"
    whole = redact_text(text, ENV)
    assert not leaks(whole, key)
    assert whole.endswith(", keep it")
    for cut in range(len(text) + 1):
        assert feed(text, [cut]) == whole
    assert feed(text, range(len(text))) == whole


def test_the_name_of_the_variable_is_shown():
    assert redact_text("x correct horse battery staple y", ENV) == "x [redacted DB_PASSWORD] y"


def test_a_known_key_in_the_form_of_a_provider_has_its_own_name():
    assert redact_text(ENV["OPENAI_API_KEY"], ENV) == "[redacted OPENAI_API_KEY]"


def test_a_form_is_found_without_any_secret_of_the_environment():
    assert redact_text("use sk-abcdefghijklmnop1234 now") == "use [redacted API key] now"


def test_a_bearer_token_goes_and_the_word_stays():
    text = "Authorization: Bearer abc.DEF-123_456~789=\nX: y"
    assert redact_text(text) == "Authorization: Bearer [redacted token]\nX: y"


@pytest.mark.few(30)
@pytest.mark.parametrize("key", [*KEYS, *ENV.values()])
@pytest.mark.parametrize("before", ["line\n", "tab\t", "§", "\x1f"])
def test_a_key_inside_json_text_is_found_behind_an_escape(key, before):
    text = json.dumps({"c": before + key + "\n"})
    clean = feed(text, range(len(text)))
    assert clean == redact_text(text, ENV)
    assert not leaks(clean, key)


@pytest.mark.parametrize(
    "text",
    [
        "disk-based and risk-free task-oriented desk_lamp",
        "sk-learn and hf_hub_download, ghp_ alone, AIza, AKIA",
        "The bearer of this letter. Bearer of news",
        "aws s3 ls; Basic understanding of things",
        "a" * 5000,
        "\\n \\u00e9 \\",
        "xsk-abcdefghijklmnop1234",
        "short value: hunter2",
    ],
)
def test_ordinary_text_passes_unchanged(text):
    assert redact_text(text, ENV) == text
    assert feed(text, range(len(text))) == text


@pytest.mark.parametrize(
    "text", [" the", "quick ", "ing", ".", "\n", "disk", "wish", " 12", "é", "<think>", '{"a": 1}']
)
def test_ordinary_text_is_not_held_back(text):
    assert Redactor().feed(text) == text


@pytest.mark.parametrize("start", ["s", "sk", "sk-", "sk-abc", "gh", "AI", "Bearer", "Bearer ab"])
def test_what_may_be_the_start_of_a_key_is_held_back(start):
    redactor = Redactor()
    assert redactor.feed(f"x {start}") == "x "
    assert redactor.feed(" !") + redactor.close() == f"{start} !"


def test_the_start_of_a_known_value_is_held_back_anywhere_in_a_word():
    redactor = Redactor(ENV)
    assert redactor.feed("incorrect") == "in"
    assert redactor.feed(" it go") == "correct it go"


def test_an_endless_key_is_redacted_and_not_kept():
    redactor = Redactor()
    out = [redactor.feed("sk-" + "a1" * 100)]
    out += [redactor.feed("b2" * 50) for _ in range(200)]
    assert redactor._size <= LONGEST_KEY + 300
    out += [redactor.feed(" end"), redactor.close()]
    assert "".join(out) == "[redacted API key] end"


def test_two_keys_that_begin_alike_are_both_found():
    secrets = {"A_KEY": "abcdefghijkl", "B_KEY": "abcdefghijklmnop"}
    assert (
        feed("abcdefghijklmnop abcdefghijkl", range(40), secrets)
        == "[redacted B_KEY] [redacted A_KEY]"
    )


def test_a_redacted_key_is_followed_by_the_next():
    assert redact_text(f"{KEYS[0]},{KEYS[4]}").count("[redacted") == 2


def test_a_value_is_cleaned_in_all_its_texts_and_names():
    key = KEYS[0]
    value = {"a": [key, 1, None, {"b": f"x {key}"}], key: True, "t": (key,)}
    clean = redact_value(value, ENV)
    assert not leaks(json.dumps(clean), key)
    assert clean["a"][1:3] == [1, None]
    assert value["a"][0] == key


def test_texts_without_a_hash_are_cleaned_too():
    class Text(str):
        __hash__ = None

    clean = redact_value({"a": [Text(f"x {KEYS[0]}"), Text("plain")]}, ENV)
    assert not leaks(json.dumps(clean), KEYS[0])
    assert clean["a"][1] == "plain"


@pytest.mark.parametrize("key", ENV.values())
@pytest.mark.parametrize(
    "write",
    [
        repr,
        lambda key: repr(f"it's {key}"),
        lambda key: repr(f'it\'s "{key}"'),
        html.escape,
        lambda key: html.escape(key, quote=False),
        quote,
        lambda key: f"https://h/?a={quote(key, safe='')}&b",
        lambda key: urlencode({"key": key}),
        lambda key: json.dumps({"inner": json.dumps({"key": key})}),
        lambda key: json.dumps({"inner": json.dumps({"key": key}, ensure_ascii=False)}),
        lambda key: json.dumps(f"KeyError: {key!r}"),
        lambda key: json.dumps(f"<b>{html.escape(key)}</b>"),
    ],
)
def test_a_value_is_found_as_other_languages_write_it(key, write):
    clean = redact_text(write(key), ENV)
    assert not leaks(clean, key)
    assert feed(write(key), range(len(write(key)))) == clean


PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256))).decode()


@pytest.mark.parametrize(
    "text", [PICTURE, f"data:image/png;base64,{PICTURE}", "\n".join(textwrap.wrap(PICTURE, 76))]
)
def test_media_stay_as_they_are(text):
    secrets = {"A_KEY": PICTURE[40:60]}
    assert redact_value({"image/png": text}, secrets) == {"image/png": text}


@pytest.mark.parametrize(
    "text", [f"{PICTURE} {KEYS[0]}", f"data:text/plain;base64,{KEYS[11]}", f"/9j/{KEYS[0]}"]
)
def test_a_key_beside_media_is_found(text):
    assert "[redacted" in redact_value([text])[0]


def test_a_provider_gets_its_own_back_and_no_key_passes_as_a_signature():
    redaction = Redaction(ENV)
    value = {"signature": KEYS[0], "text": KEYS[0], "nested": {"encrypted_content": KEYS[0]}}
    assert redaction.payload(value) == {**value, "text": "[redacted API key]"}
    assert KEYS[0] not in str(redaction.value(value))


def test_a_value_of_any_depth_is_cleaned():
    value = KEYS[0]
    for _ in range(5000):
        value = [value]
    clean = redact_value(value)
    while isinstance(clean, list):
        (clean,) = clean
    assert clean == "[redacted API key]"


SECRET_NAMES = (
    "OPENAI_API_KEY",
    "OPENAI_API_KEY2",
    "HF_TOKEN",
    "DB_PASSWORD",
    "PGPASSWORD",
    "MY_SECRET",
    "X_API_KEY_2",
    "apikey",
    "SMTP_PASS",
    "MYSQL_PWD",
)
ORDINARY_NAMES = (
    "KEYBOARD",
    "TOKENIZERS_PARALLELISM",
    "PWD",
    "OLDPWD",
    "PATH",
    "MONKEY",
    "COMPASS",
    "KEY_FILE",
)


def test_variables_are_known_by_the_last_word_of_their_name():
    env = dict.fromkeys((*SECRET_NAMES, *ORDINARY_NAMES), "x" * 12) | {"SHORT_KEY": "tiny"}
    assert set(environment_secrets(env)) == set(SECRET_NAMES)


@pytest.mark.parametrize(
    "path",
    [
        "/home/user/key.json",
        "~/service-account",
        r"C:\Users\me\key.json",
        "D:/service-account",
        r"\\server\service-account",
        "keys/service.json",
    ],
)
def test_credentials_that_are_a_path_are_not_secret(path):
    names = ("GOOGLE_APPLICATION_CREDENTIALS", "ORIGINAL_PWD", "MY_CREDENTIAL")
    assert environment_secrets(dict.fromkeys(names, path)) == {}
    assert environment_secrets({"MY_SECRET": path}) == {"MY_SECRET": path}


def test_the_password_of_an_address_is_a_secret_and_the_address_is_none():
    env = {
        "AGENT_NB_HUB": "rediss://ada:long%2Fpass-word@redis.example.org/0",
        "REDIS_URL": "redis://:another-pass-word@localhost",
        "HOME_PAGE": "https://example.org/a:b@c",
        "PROXY": "http://ada@proxy:8080/",
        "SHORT": "ftp://ada:x@h",
    }
    assert set(environment_secrets(env).values()) == {
        "long%2Fpass-word",
        "long/pass-word",
        "another-pass-word",
    }


@pytest.mark.parametrize(
    "value",
    [
        "redis-sentinel://:long-pass-word@host/0",
        "jdbc:postgresql://ada:long-pass-word@host/db",
        " postgresql://ada:long-pass-word@host",
        '{"url": "amqp://ada:long-pass-word@host"}',
        "amqp://ada:other-pass-word@first;amqp://ada:long-pass-word@second",
    ],
)
def test_the_password_of_an_address_is_found_wherever_it_stands(value):
    assert "long-pass-word" in environment_secrets({"ANY": value}).values()


def test_short_values_are_never_secret():
    assert redact_text("yes yes", {"A_KEY": "yes"}) == "yes yes"


WORDS = st.sampled_from(
    [
        " ",
        "the ",
        "sk",
        "-",
        "key=",
        "\n",
        "\\n",
        "\\",
        '"',
        "Bearer ",
        "s",
        "g",
        "é",
        "答",
        "a",
        "correct ",
        "1",
        "horse ",
        "_",
    ]
)
TEXT = st.lists(
    st.one_of(WORDS, st.sampled_from(ALL), st.text(string.printable, max_size=5)), max_size=12
).map("".join)


@given(TEXT, st.lists(st.integers(0, 300), max_size=12))
@example("sk-abcdefghijklmnop12345", [3, 9])
@settings(max_examples=count_examples(300), deadline=None)
def test_the_result_does_not_depend_on_the_chunking(text, cuts):
    whole = redact_text(text, ENV)
    assert feed(text, [min(c, len(text)) for c in cuts]) == whole
    assert feed(text, range(len(text))) == whole


@given(
    st.sampled_from(ALL),
    st.text(" \n.,:;=\"'()[]{}<>é答", max_size=6),
    st.text(" \n.,:;\"'()[]{}<>é答", max_size=6),
    st.lists(st.integers(0, 80), max_size=8),
)
@settings(max_examples=count_examples(300), deadline=None)
def test_no_piece_of_a_key_remains(key, before, after, cuts):
    text = f"{before}{key}{after}"
    clean = feed(text, [min(c, len(text)) for c in cuts])
    assert not leaks(clean, key)
    assert clean.startswith(before)
    assert clean.endswith(after)
