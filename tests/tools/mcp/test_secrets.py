"""Secrets of an entry stay out of what a run keeps."""

import sys

import pytest
from helpers.printing import print_every_way

from agent_nb import mcp_server
from agent_nb.tools.mcp.hub import HUB
from agent_nb.tools.mcp.server import Server

pytestmark = pytest.mark.slow


@pytest.fixture
def telling(light):
    """A server with a secret in its environment, which its tools tell."""
    return mcp_server("light", light[0], light[1:], env={"SERVICE_TOKEN": "quite-secret-value"})


def test_a_server_that_tells_its_token_does_not_get_it_into_the_record(ask, telling):
    run = ask([telling], ("environment", {}), ("echo", {"text": "hi"}))
    seen = run.log.of("result")[0].content
    assert "SERVICE_TOKEN" in seen
    assert "quite-secret-value" not in str(list(run.log))


def test_the_next_run_hides_it_everywhere(ask, telling):
    HUB.close()  # a start makes the secret known, and each test forgets those of others
    ask([telling], ("echo", {"text": "hi"}))
    run = ask([telling], ("echo", {"text": "it was quite-secret-value"}))
    assert "quite-secret-value" not in str(list(run.log))


def test_an_error_of_a_tool_tells_none(ask, telling):
    run = ask([telling], ("fail", {"text": "quite-secret-value"}))
    assert run.log.of("result")[0].status == "error"
    assert "quite-secret-value" not in run.log.of("result")[0].content


def test_the_token_behind_a_word_is_a_secret_too():
    made = mcp_server(
        "s", url="https://x.example", headers={"Authorization": "Bearer quite-secret"}
    )
    assert {"Bearer quite-secret", "quite-secret"} <= set(made.secrets.values())
    assert mcp_server("s", sys.executable, env={"AUTHOR": "a name of somebody"}).secrets == {}


@pytest.mark.parametrize(
    ("arguments", "secrets"),
    [
        (["--token", "abc-123-def"], ["abc-123-def"]),
        (["--api-key=abc-123-def", "--verbose"], ["abc-123-def"]),
        (["-c", 'run --password abc-123-def "a file"'], ["abc-123-def"]),
        (['{"host": "x", "apiKey": "abc-123-def", "secret":"other-one"}'], ["abc-123-def", "other-one"]),
        (["--header", "Authorization: Bearer abc-123-def"], ["abc-123-def"]),
        (["--token", "--verbose", "--key-file", "/etc/service.pem"], []),
        (["--max-tokens", "100000", "--keymap", "standard", "--author", "Ann Lee"], []),
    ],
)  # fmt: skip
def test_a_secret_among_the_arguments_is_one_of_the_entry(arguments, secrets):
    assert list(mcp_server("s", "run", arguments).secrets.values()) == secrets


def test_a_server_that_tells_its_arguments_tells_no_secret_of_them(ask, light):
    telling = mcp_server("light", light[0], [*light[1:], "--token", "quite-secret-value"])
    run = ask([telling], ("echo", {"text": "it was quite-secret-value"}))
    assert "quite-secret-value" not in run.log.of("result")[0].content


def test_an_entry_is_printed_without_its_keys():
    key = "correct-horse"
    entry = Server(
        name="s", args=(key,), env={"K": key}, headers={"K": key}, url=f"http://h?k={key}"
    )
    assert key not in print_every_way(entry)
