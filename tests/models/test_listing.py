"""The providers, configured endpoints and their keys, and the models that a server offers."""

import json
import types

import anyio
import pytest

from agent_nb.errors import ModelError, UsageError
from agent_nb.models import choose, listing

KEY = "sk-" + "abcdefgh" * 4
LISTED = '{"object": "list", "data": [{"id": "b"}, {"id": "models/a"}]}'


@pytest.fixture
def configure(tmp_path, monkeypatch):
    def write(text):
        (tmp_path / "c.toml").write_text(text)
        monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "c.toml"))

    return write


@pytest.fixture
def lab(serve, configure):
    """An endpoint of the configuration whose server answers so."""

    def lab(behaviour, more=""):
        server = serve(behaviour)
        configure(f'[endpoints.lab]\nbase_url = "{server.url}"\n{more}')
        return server

    return lab


def names(provider="lab"):
    return anyio.run(listing.list_models, provider)


@pytest.mark.parametrize("api", ["openai", "openai-responses", "anthropic"])
def test_an_endpoint_of_every_api_lists_its_models_with_its_key(lab, monkeypatch, api):
    monkeypatch.setenv("LAB_TOKEN", KEY)
    asked = []

    def behaviour(peer):
        asked.append((peer.path, peer.headers))
        peer.reply(200, LISTED)

    lab(behaviour, f'api = "{api}"\nkey = "LAB_TOKEN"\n')
    assert names() == ["a", "b"]
    [(path, headers)] = asked
    assert "/models" in path
    assert any(KEY in value for value in headers.values())


@pytest.mark.parametrize(
    ("provider", "variable", "end"),
    [
        ("ollama", "OLLAMA_HOST", ""),
        ("openai", "OPENAI_BASE_URL", "/v1"),
        ("openai-responses", "OPENAI_BASE_URL", "/v1"),
        ("anthropic", "ANTHROPIC_BASE_URL", ""),
    ],
)
def test_a_provider_lists_the_models_of_the_server_that_is_set(
    serve, monkeypatch, provider, variable, end
):
    server = serve(lambda peer: peer.reply(200, LISTED))
    address = server.url.partition("/v1")[0]
    monkeypatch.setenv(variable, f"{address}{end}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert names(provider) == ["a", "b"]


def test_a_server_without_models_lists_none(lab):
    lab(lambda peer: peer.reply(200, '{"object": "list", "data": null}'))
    assert names() == []


def test_the_embedded_model_is_listed(monkeypatch):
    async def models():
        return ["smollm2"]

    async def aclose():
        return None

    made = types.SimpleNamespace(models=models, aclose=aclose)
    monkeypatch.setattr(choose, "make_model", lambda name: made)
    assert names("local") == ["smollm2"]


@pytest.mark.parametrize(
    ("provider", "words"),
    [("scripted", "scripted/FILE"), ("nobody", "There is no provider"), ("opnai", "openai")],
)
def test_what_cannot_be_listed_is_an_error_that_says_why(provider, words):
    with pytest.raises(UsageError, match=words):
        names(provider)


def test_a_model_that_lists_nothing_says_how_to_name_one(monkeypatch):
    async def aclose():
        return None

    monkeypatch.setattr(choose, "make_model", lambda name: types.SimpleNamespace(aclose=aclose))
    with pytest.raises(UsageError, match="-m echo/NAME"):
        names("echo")


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (lambda peer: peer.reply(401, "{}"), "answered 401.*%agent key"),
        (lambda peer: peer.reply(403, "{}"), "answered 403.*%agent key"),
        (lambda peer: peer.reply(404, "{}"), "answered 404.*-m lab/NAME"),
        (lambda peer: peer.reply(200, "<html>"), "not answer with JSON.*-m lab/NAME"),
        (lambda peer: peer.reply(200, '{"data": 7}'), "without a list of models.*-m lab/NAME"),
        (lambda peer: peer.reply(200, '{"data": "ab"}'), "without a list of models"),
        (lambda peer: peer.reply(200, "{}"), "without a list of models"),
        (lambda peer: peer.reply(200, "7"), "without a list of models"),
    ],
)
def test_a_server_that_lists_no_models_is_an_error_that_says_what_to_do(lab, behaviour, words):
    lab(behaviour)
    with pytest.raises(ModelError, match=words):
        names()


def test_a_server_that_does_not_answer_is_given_up(lab, monkeypatch):
    monkeypatch.setattr(listing, "_LIST_TIMEOUT", 0.2)
    lab(lambda peer: peer.connection.recv(1))
    with pytest.raises(ModelError, match=r"did not list its models within 0\.2 s"):
        names()


def test_a_server_that_is_not_there_is_an_error(configure):
    configure('[endpoints.lab]\nbase_url = "http://127.0.0.1:9/v1"\n')
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9"):
        names()


def test_names_that_no_option_could_name_are_left_out(lab):
    hostile = ["ok", "two words", "a\nb", "\u202e", "\x1b[2J", 'q"', "", "x" * 201]
    lab(lambda peer: peer.reply(200, json.dumps({"data": hostile})))
    assert names() == ["ok"]


def test_the_providers_are_listed_with_server_and_key(configure, monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    configure(
        '[endpoints.lab]\nbase_url = "http://me:secret@lab:8000/v1"\nkey = "LAB_TOKEN"\n'
        '[endpoints.free]\nbase_url = "http://free/v1"\n'
        '[endpoints.wrong]\nbase_url = "http://x"\napi = "grpc"\n'
    )
    monkeypatch.setattr(choose, "is_local_installed", lambda: True)
    rows = listing.list_providers()
    assert [row.name for row in rows[:4]] == ["free", "lab", "wrong", "groq"]
    assert {row.name for row in rows if row.ready} >= {"free", "lab", "wrong", "groq", "ollama"}
    assert "openai" not in {row.name for row in rows if row.ready}
    found = {row.name: (row.server, row.key) for row in rows}
    assert found["lab"] == ("http://lab:8000/v1", "missing: set LAB_TOKEN")
    assert found["free"] == ("http://free/v1", "not needed")
    assert "it is openai, openai-responses or anthropic" in found["wrong"][0]
    assert found["groq"][1] == "from GROQ_API_KEY"
    assert found["openai"] == ("https://api.openai.com/v1", "missing: set OPENAI_API_KEY")
    assert found["local"] == ("this process", "not needed")
    monkeypatch.setattr(choose, "is_local_installed", lambda: False)
    assert ("local", "not installed", "not needed", True) in listing.list_providers()
    assert found["ollama"][1] == "not needed"
    assert KEY not in str(rows)
    assert "secret" not in str(rows)


@pytest.mark.parametrize("host", ["host:abc", "[::1", "http://h:99999"])
def test_an_ollama_host_that_is_no_address_is_named(monkeypatch, host):
    monkeypatch.setenv("OLLAMA_HOST", host)
    with pytest.raises(UsageError, match="OLLAMA_HOST"):
        choose.make_model("ollama/x")
