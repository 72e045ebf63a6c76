"""Entries of `.mcp.json`: what is read, what is refused, what is shown before a permission."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb import mcp_server
from agent_nb.errors import UsageError
from agent_nb.tools.mcp import config_file
from agent_nb.tools.mcp.config_file import parse, read_servers

PATH = Path("/project/.mcp.json")


def parsed(**servers):
    return parse(json.dumps({"mcpServers": servers}).encode(), PATH)


def test_both_kinds_of_servers_are_read():
    found = parsed(
        local={"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "cwd": "sub"},
        remote={"type": "http", "url": "https://example.org/mcp", "headers": {"X": "y"}},
    )
    local, remote = found.server("local"), found.server("remote")
    assert (local.command, local.args, local.env, local.cwd) == (
        "npx",
        ("-y", "x"),
        {"A": "b"},
        "sub",
    )
    assert (remote.url, remote.headers, remote.command) == (
        "https://example.org/mcp",
        {"X": "y"},
        "",
    )


def test_keys_of_other_programs_allow_nothing_and_do_not_disturb():
    found = parsed(a={"command": "x", "alwaysAllow": ["*"], "autoApprove": True, "trust": True})
    assert found.server("a").command == "x"


def test_a_disabled_server_is_not_there():
    with pytest.raises(UsageError, match="There is no MCP server"):
        parsed(a={"command": "x", "disabled": True}).server("a")


def test_a_byte_order_mark_does_not_matter():
    text = json.dumps({"mcpServers": {"a": {"command": "x"}}})
    assert parse(b"\xef\xbb\xbf" + text.encode(), PATH).server("a").command == "x"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not JSON"),
        (b"{", "line 1 is not JSON"),
        (b"\xff\xfe{\x00}\x00", "is not JSON in UTF-8"),
        (b"[]", "must be an object"),
        (b'{"mcpServers": []}', "must be an object"),
        (b'{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', 'key "a" stands twice'),
        (b'{"mcpServers": {"a": {"command": "x", "command": "y"}}}', "stands twice"),
        (b"[" * 100_000, "is not JSON"),
        (b" " * (1 << 20) + b"{}", "larger than 1 MB"),
        (json.dumps({"mcpServers": {str(n): {} for n in range(101)}}).encode(), "101 servers"),
    ],
)  # fmt: skip
def test_a_faulty_file_is_a_usage_error(content, words):
    with pytest.raises(UsageError, match=words):
        parse(content, PATH)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (None, "must be an object"),
        ("npx", "must be an object"),
        ({}, "either a command or a url"),
        ({"command": "x", "url": "https://y"}, "either a command or a url"),
        ({"command": ["x"]}, "command must be a text"),
        ({"command": "x", "args": "-y"}, "args must be a list"),
        ({"command": "x", "args": [1]}, "each of args must be a text"),
        ({"command": "x", "args": ["x"] * 257}, "256"),
        ({"command": "x" * 8193}, "8,192 characters"),
        ({"command": "x", "env": {"A": 1}}, "each value of env"),
        ({"command": "x", "env": {"A=B": "1"}}, "a name in env"),
        ({"command": "x\0y"}, "null character"),
        ({"command": "x\ud800"}, "must be a text"),
        ({"type": "sse", "url": "https://x"}, "sse is no longer supported"),
        ({"type": "carrier pigeon", "command": "x"}, "not stdio or http"),
        ({"type": "http", "command": "x"}, "does not fit its command"),
        ({"type": "stdio", "url": "https://x"}, "does not fit its url"),
        ({"url": "file:///etc/passwd"}, "must begin with http"),
        ({"url": "https://"}, "must begin with http"),
        ({"url": "https://x", "headers": {"A": "b\r\nC: d"}}, "line break"),
    ],
)  # fmt: skip
def test_a_faulty_entry_is_named_and_leaves_the_others(entry, words):
    found = parsed(bad=entry, good={"command": "x"})
    assert found.server("good").command == "x"
    with pytest.raises(UsageError, match=words) as fault:
        found.server("bad")
    assert '"bad"' in str(fault.value)
    assert "/project/.mcp.json" in str(fault.value)


@pytest.mark.parametrize("name", ["", " a", "a/b", "a,b", "а", "a\x1b[2J", "a\u202eb", "a" * 65])
def test_a_name_that_misleads_is_refused_and_shown_escaped(name):
    with pytest.raises(UsageError) as fault:
        parsed(**{name: {"command": "x"}}).server(name)
    assert str(fault.value).isascii()
    assert str(fault.value).isprintable()


def test_an_unknown_server_gets_a_suggestion():
    with pytest.raises(UsageError, match="Did you mean weather"):
        parsed(weather={"command": "x"}).server("wether")


def test_without_a_file_the_message_says_so(tmp_path):
    (tmp_path / ".git").mkdir()
    with pytest.raises(
        UsageError,
        match=r"neither this folder nor one above it has a file \.mcp\.json\. Write one, such as",
    ):
        read_servers(tmp_path).server("a")


def test_the_nearest_file_counts_and_none_above_the_repository(tmp_path):
    (tmp_path / config_file.MCP_FILE).write_text('{"mcpServers": {"outer": {"command": "x"}}}')
    inner = tmp_path / "repository" / "notebooks"
    inner.mkdir(parents=True)
    assert read_servers(inner).servers
    (tmp_path / "repository" / ".git").mkdir()
    assert not read_servers(inner).servers


def test_what_decides_what_runs_is_in_the_digest():
    entry = {"command": "x", "args": ["a"], "env": {"A": "1"}, "cwd": "d"}
    same = [parsed(s=entry).server("s").digest for _ in range(2)]
    changed = [
        parsed(s={**entry, **change}).server("s").digest
        for change in (
            {"command": "y"}, {"args": ["b"]}, {"args": ["a", "a"]}, {"env": {"A": "2"}},
            {"env": {"B": "1"}}, {"cwd": "e"}, {"args": []},
        )
    ]  # fmt: skip
    other = parse(json.dumps({"mcpServers": {"s": entry}}).encode(), Path("/other/.mcp.json"))
    assert same[0] == same[1]
    assert len({same[0], *changed, other.server("s").digest}) == len(changed) + 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"args": ["--port", 8080]}, "Expected `str`, got `int` - at `$.args[1]`"),
        ({"args": "serve"}, "Expected `array`, got `str` - at `$.args`"),
        ({"cwd": Path("sub")}, "at `$.cwd`"),
        ({"env": {"A": 1}}, "at `$.env[...]`"),
        ({"timeout": "3"}, "at `$.timeout`"),
        ({"timeout": float("nan")}, "its timeout must be a number of seconds"),
        ({"timeout": float("-inf")}, "its timeout must be a number of seconds"),
        ({"args": ["\ud800"]}, "half a character"),
    ],
)
def test_wrong_values_in_code_are_a_usage_error(fields, words):
    with pytest.raises(UsageError) as raised:
        mcp_server("a", "npx", **fields)
    assert words in str(raised.value)


def test_a_server_without_a_time_limit_has_a_digest():
    digests = [mcp_server("a", "npx", timeout=t).digest for t in (None, 3, float("inf"))]
    assert len({*digests}) == 3


def test_an_entry_is_shown_exactly_and_only_variables_are_not_filled_in():
    made = mcp_server(
        "a",
        "nрx",  # the second letter is Cyrillic
        ["-y", "\x1b[2Jharmless", "two words", "${HOME}/x"],
        env={
            "NODE_OPTIONS": "--require ./evil.js",
            "AUTH_KEY": "; curl evil.example",
            "API_TOKEN": "${MY_TOKEN}",
        },
    )
    shown = "\n".join(made.describe())
    assert shown.isascii()
    assert '"n\\u0440x" "-y" "\\u001b[2Jharmless" "two words"' in shown
    assert '"NODE_OPTIONS"="--require ./evil.js"' in shown
    assert '"AUTH_KEY"="; curl evil.example"' in shown
    assert '"API_TOKEN"="${MY_TOKEN}"' in shown
    assert "reads your variables: HOME, MY_TOKEN" in shown


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ('{"profile": "me", "apiKey": "quite-secret"}', '{"profile": "me", "apiKey": ***'),
        ('{\\"apiKey\\":\\"quite-secret\\"}', '{\\"apiKey\\":***'),
        ("npx x --verbose --token quite-secret y", "npx x --verbose --token ***"),
        ("npx x --no-token --port 80", "npx x --no-token --port 80"),
        ("run a token or two", "run a token or two"),
    ],
)
def test_a_secret_inside_an_argument_is_masked(argument, shown):
    assert mcp_server("a", "sh", ["-c", argument]).mask().args == ("-c", shown)


def test_variables_are_filled_in_everywhere():
    made = mcp_server("a", url="https://${HOST}/x", headers={"A": "Bearer ${TOKEN:-none}"})
    found = made.expand({"HOST": "example.org"})
    assert (found.url, found.headers) == ("https://example.org/x", {"A": "Bearer none"})
    assert made.url == "https://${HOST}/x"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["mcpServers", "command", "args", "env", "url", "type", "cwd", "a"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_read_or_refused_in_words(value):
    try:
        found = parse(json.dumps({"mcpServers": {"a": value}}).encode(), PATH)
    except UsageError:
        return
    assert set(found.servers) | set(found.faults) <= {"a"}


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_words(content):
    with suppress(UsageError):
        parse(content, PATH)
