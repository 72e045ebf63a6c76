"""Addresses of Redis: what is refused, and that user and password are shown nowhere."""

import pytest
from helpers.printing import print_every_way

from agent_nb.errors import UsageError
from agent_nb.models import keys
from agent_nb.server.redis.address import configured_address, parse_address


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1", "redis://127.0.0.1:6379/0"),
        ("redis://localhost:7000/3?prefix=team", "redis://localhost:7000/3"),
        ("redis://ada:s3cret-word@[::1]:7000", "redis://[::1]:7000/0"),
        ("rediss://ada:s3cret-word@db.example.org/1", "rediss://db.example.org:6379/1"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("unix:///run/redis@1.sock", "unix:///run/redis@1.sock"),
    ],
)
def test_an_address_is_shown_without_user_and_password(url, shown):
    place = parse_address(url)
    assert place.shown == shown
    assert repr(place) == str(place) == f"RedisAddress({shown})"
    assert "ada" not in print_every_way(place)


@pytest.mark.parametrize("host", ["redis.example.org", "10.0.0.5", "0.0.0.0", "[fe80::1]"])
def test_off_loopback_tls_is_required(host):
    with pytest.raises(UsageError, match="rediss://") as caught:
        parse_address(f"redis://ada:s3cret-word@{host}:6379/0")
    assert "s3cret" not in str(caught.value)
    assert "ada" not in str(caught.value)
    assert parse_address(f"rediss://{host}").scheme == "rediss"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://127.0.0.1",
        "redis://",
        "unix://",
        "unix://run/redis.sock",
        "redis://ada:s3cret-word@127.0.0.1:port/0",
        "redis://ada:s3cret-word@127.0.0.1/x",
        "redis://ada:s3cret-word@127.0.0.1/0?ssl_cert_reqs=none",
        "rediss://ada:s3cret-word@[::1/0",
        "redis://s3cret:12/34@127.0.0.1",
        "rediss://ada:5?s3cret=word@127.0.0.1/0",
        "rediss://ada:5#s3cret@127.0.0.1/0",
        "redis://localhost:0",
    ],
)
def test_a_wrong_address_is_refused_without_its_secrets(url):
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert "s3cret" not in str(caught.value)
    assert "ada" not in str(caught.value)


def test_a_password_is_hidden_from_every_run_and_scrubbed_from_errors():
    place = parse_address("redis://ada:s3cret%2Fword@127.0.0.1")
    assert place.password == "s3cret/word"
    assert "s3cret/word" in keys.collect_secrets().values()
    assert place.scrub("WRONGPASS ada s3cret/word") == "WRONGPASS … …"
    assert place.scrub("no answer of ada:s3cret%2Fword@127.0.0.1") == "no answer of …:…@127.0.0.1"


def test_the_address_of_the_environment_counts_unless_one_is_given(monkeypatch):
    assert configured_address(None) == ""
    monkeypatch.setenv("AGENT_NB_HUB", "redis://127.0.0.1")
    assert configured_address(None) == "redis://127.0.0.1"
    assert configured_address("") == ""
    assert configured_address("unix:///x") == "unix:///x"


def test_keys_of_two_prefixes_are_apart():
    assert parse_address("redis://localhost").key("runs") == "agent_nb:runs"
    assert parse_address("redis://localhost?prefix=team").key("run", "r") == "team:run:r"
