"""Policy files: the first rule that fits decides, globs cannot be talked around, mistakes are named with their line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_nb.errors import UsageError
from agent_nb.tools.policy import Policy, load, parse
from agent_nb.tools.toolset import resolve

TOOLS = resolve("files,shell,python")
POLICY = """
default: ask
rules:
  - allow: [read, list]
    args: {file: "data/*"}
  - deny: read
    args: {file: ["secret/*", "*.ipynb"]}
  - allow: write
    args: {file: "out/*"}
  - allow: shell
    args: {command: ["git status", "git diff*", "git log | head*"]}
  - deny: shell
    args: {command: "*sudo*"}
    reason: never as root
  - ask: list
    args: {path: "."}
"""


@pytest.mark.parametrize(
    ("name", "args", "verdict"),
    [
        ("read", {"file": "data/x.csv"}, "allow"),
        ("read", {"file": "data/../secret/x"}, "deny"),
        ("read", {"file": "./secret/x"}, "deny"),
        ("read", {"file": "a/../secret/x"}, "deny"),
        ("read", {"file": "SECRET/x"}, "deny"),
        ("read", {"file": "secret//x"}, "deny"),
        ("read", {"file": "secret\\x"}, "deny"),
        ("read", {"file": "\uff53ecret/x"}, "deny"),
        ("read", {"file": "Notes.IPYNB"}, "deny"),
        ("read", {"file": "other.txt"}, "allow"),
        ("write", {"file": "out/a", "content": "x"}, "allow"),
        ("write", {"file": "out/../a", "content": "x"}, "ask"),
        ("write", {"file": "Out/a", "content": "x"}, "ask"),
        ("write", {"file": "a", "content": "x"}, "ask"),
        ("shell", {"command": "git status"}, "allow"),
        ("shell", {"command": "git status; rm -rf ."}, "ask"),
        ("shell", {"command": "git diff HEAD~1"}, "allow"),
        ("shell", {"command": "git diff; rm x"}, "ask"),
        ("shell", {"command": "git diff && rm x"}, "ask"),
        ("shell", {"command": "git diff $(rm x)"}, "ask"),
        ("shell", {"command": "git diff `rm x`"}, "ask"),
        ("shell", {"command": "git diff\nrm x"}, "ask"),
        ("shell", {"command": "git diff > x"}, "ask"),
        ("shell", {"command": "git log | head -3"}, "allow"),
        ("shell", {"command": "git log | head -3 | sh"}, "ask"),
        ("shell", {"command": "ls; sudo x"}, "deny"),
        ("shell", {"command": "ls; SUDO x"}, "deny"),
        ("python", {"code": "1"}, "ask"),
        ("list", {}, "ask"),
        ("list", {"path": "sub"}, "allow"),
    ],
)
def test_the_first_rule_that_fits_decides(name: str, args: dict[str, Any], verdict: str) -> None:
    assert parse(POLICY).judge(TOOLS[name], args)[0] == verdict


def test_the_reason_names_the_rule() -> None:
    assert parse(POLICY, "p.yaml").judge(TOOLS["shell"], {"command": "sudo x"})[1] == "never as root; p.yaml, line 12"
    assert parse("default: deny", "p.yaml").judge(TOOLS["shell"], {"command": "x"}) == ("deny", "default of p.yaml")


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_the_default_is_for_tools_with_effects(default: str) -> None:
    policy = parse(f"default: {default}")
    assert policy.judge(TOOLS["write"], {})[0] == default
    assert policy.judge(TOOLS["read"], {}) == ("allow", "")


def test_a_rule_with_an_argument_the_tool_does_not_have_never_fits() -> None:
    assert parse('rules: [{deny: "*", args: {nothing: "*"}}]').judge(TOOLS["read"], {"file": "x"})[0] == "allow"


def test_values_that_are_no_text_are_compared_as_json() -> None:
    policy = parse('rules: [{deny: read, args: {limit: "1*"}}]')
    assert policy.judge(TOOLS["read"], {"file": "x", "limit": 100})[0] == "deny"
    assert policy.judge(TOOLS["read"], {"file": "x", "limit": 2})[0] == "allow"


def test_words_that_yaml_takes_for_booleans_are_names() -> None:
    assert parse("rules: [{deny: [no, on]}]").rules[0].tools == ("no", "on")


def test_an_empty_file_is_ask() -> None:
    assert parse("").judge(TOOLS["write"], {})[0] == "ask"
    assert parse("rules:\n").rules == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- allow: x", "line 1: expected keys (default, rules)"),
        ("default: maybe", "line 1: 'maybe' is no decision; write allow, ask or deny"),
        ("default: [ask]", "is no decision"),
        ("\nrule: []", "line 2: unknown key 'rule'; known here: default, rules"),
        ("rules: read", "line 1: `rules` must be a list"),
        ("rules:\n- allow: x\n  deny: y", "line 2: a rule needs exactly one of allow, ask and deny"),
        ("rules:\n- args: {a: b}", "line 2: a rule needs exactly one"),
        ("rules:\n- allow: x\n  arg: {a: b}", "line 3: unknown key 'arg'"),
        ("rules:\n- allow: x\n  args: [a]", "line 3: expected arguments with their globs"),
        ("rules:\n- allow: {a: b}", "line 2: expected a text or a list of texts"),
        ("rules:\n- allow: x\n  args:\n    a: [[b]]", "line 4: expected a text or a list of texts"),
        ("rules:\n- allow:", "line 2: expected a text"),
        ("rules:\n- just text", "line 2: expected keys"),
        ("default: ask\ndefault: deny", "line 2: the key 'default' stands twice"),
        ("rules: [", "line 1"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        ("!!python/object/apply:os.system ['x']", "line 1: expected keys"),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text, "p.yaml")
    assert str(raised.value).startswith("p.yaml, line ")
    assert said in str(raised.value)


def test_a_file_that_is_huge_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big.yaml").write_bytes(b"#" * (2 << 20))
    (tmp_path / "bin.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="larger than 1 MB"):
        load("big.yaml", str(tmp_path))
    with pytest.raises(UsageError, match="not UTF-8"):
        load("bin.yaml", str(tmp_path))


def test_the_three_words_are_policies() -> None:
    assert [load(mode).default for mode in ("ask", "auto", "deny")] == ["ask", "allow", "deny"]
    assert Policy().default == "ask"
