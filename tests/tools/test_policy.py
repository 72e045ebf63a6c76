"""Policy files: the first rule that fits decides, globs cannot be talked around, mistakes are named
with their line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_nb.errors import UsageError
from agent_nb.host import trust
from agent_nb.tools.decorator import as_tool
from agent_nb.tools.policy import Policy, Rule
from agent_nb.tools.policy_file import load_policy, parse
from agent_nb.tools.toolset import Toolset

TOOLS = Toolset.resolve("files,shell,python")
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
        ("shell", {"command": "  git \t status "}, "allow"),
        ("shell", {"command": "\ngit  status\n"}, "allow"),
        ("shell", {"command": "git status && git diff x; git status"}, "allow"),
        ("shell", {"command": "git status\ngit diff"}, "allow"),
        ("shell", {"command": "git status & rm x"}, "ask"),
        # a comment does not go on in the next line
        ("shell", {"command": "git diff # \\\nrm x"}, "ask"),
        ("shell", {"command": 'git diff "; rm x"'}, "ask"),
        ("shell", {"command": "git status && (git status)"}, "ask"),
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


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "  rm -rf x",
        "rm\t-rf x",
        "RM -rf x",
        "ls; rm -rf x",
        "ls;rm -rf x",
        "ls && rm -rf x",
        "ls || rm -rf x",
        "ls | rm -rf x",
        "ls |& rm -rf x",
        "ls & rm -rf x",
        "ls\nrm -rf x",
        "echo $(rm -rf x)",
        "echo `rm -rf x`",
        "(rm -rf x)",
        "{ rm -rf x; }",
        "cat <(rm -rf x)",
        "if true; then rm -rf x; fi",
        "for f in *; do rm -rf $f; done",
        "! rm -rf x",
        "A=1 B=2 rm -rf x",
        "'rm' -rf x",
        "r\\m -rf x",
        "r\\\nm -rf x",
        "f() { rm -rf x; }; f",
    ],
)
def test_a_denied_command_is_found_in_every_part_of_a_command_line(command: str) -> None:
    policy = parse('default: allow\nrules: [{deny: shell, args: {command: "rm *"}}]')
    assert policy.judge(TOOLS["shell"], {"command": command})[0] == "deny"


@pytest.mark.parametrize("command", ["ls", "rmdir x", "echo rm", "npm rm x"])
def test_other_commands_are_not_taken_for_the_denied_one(command: str) -> None:
    policy = parse('default: allow\nrules: [{deny: shell, args: {command: "rm *"}}]')
    assert policy.judge(TOOLS["shell"], {"command": command})[0] == "allow"


def test_each_part_is_decided_by_its_first_rule_and_the_strictest_counts() -> None:
    rules = 'rules: [{allow: shell, args: {command: "git *"}}, {ask: shell, args: {command: "ls*"}}, {deny: shell, args: {command: "*x*"}}]'
    cases = {
        "git x": "allow",
        "git x; git y": "allow",
        "git x && ls": "ask",
        "ls; rm x": "deny",
        "git y; pwd": "ask",
        "git a|b x": "deny",
    }
    assert {
        command: parse(rules).judge(TOOLS["shell"], {"command": command})[0] for command in cases
    } == cases


def test_a_long_command_line_is_judged_in_linear_time() -> None:
    policy = parse(
        'rules: [{allow: shell, args: {command: "a*"}}, {deny: shell, args: {command: "rm *"}}]'
    )
    line = ";".join(f"b{n} (c; ' d \\ e' A=1" for n in range(20_000))
    assert policy.judge(TOOLS["shell"], {"command": line})[0] == "ask"


@pytest.mark.parametrize(
    ("rule", "tool", "verdict"),
    [
        ("deny: Shell", "shell", "deny"),
        ("deny: SHELL", "shell", "deny"),
        ("deny: my-tool", "my_tool", "deny"),
        ("deny: My Tool", "my_tool", "deny"),
        ("deny: löschen", "loschen", "deny"),
        ("deny: 'SH*'", "shell", "deny"),
        ("ask: Loschen", "loschen", "ask"),
        ("allow: shell", "shell", "allow"),
        ("allow: löschen", "loschen", "allow"),
        ("allow: Shell", "shell", "deny"),  # when in doubt an allowing rule does not fit
        ("allow: my-tool", "my_tool", "deny"),
    ],
)
def test_names_compare_as_tools_are_named(rule: str, tool: str, verdict: str) -> None:
    def function() -> None: ...

    made = as_tool(function, tool)
    policy = (
        parse(f"default: deny\nrules: [{{{rule}}}]")
        if "allow" in rule
        else parse(f"rules: [{{{rule}}}]")
    )
    assert policy.judge(msgspec.structs.replace(made, effect="outside"), {})[0] == verdict


ALLOWING = "default: allow\nrules: [{allow: [shell, read]}, {deny: write, args: {file: 'x*'}}, {ask: list}]"


def judged(policy: Policy) -> list[str]:
    """Return the verdicts on five calls."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("shell", {"command": "x"}),
        ("python", {"code": "1"}),
        ("write", {"file": "x"}),
        ("read", {"file": "x"}),
        ("list", {}),
    ]
    return [policy.judge(TOOLS[name], args)[0] for name, args in calls]


def test_a_policy_of_the_folder_only_restricts_until_it_is_allowed(
    tmp_path: Path,
) -> None:
    (tmp_path / "p.yaml").write_text(ALLOWING)
    policy = load_policy("p.yaml", str(tmp_path))
    assert judged(policy) == ["ask", "ask", "deny", "allow", "ask"]
    assert policy.offer is not None
    assert policy.offer.does == "allows shell, read, everything that no rule names"
    assert policy.remarks == (policy.offer.refusal,)
    why = policy.judge(TOOLS["shell"], {"command": "x"})[1]
    assert why.startswith(
        f"p.yaml, line 2 would allow it, but p.yaml in {tmp_path} allows shell, read, everything"
    )
    assert "%agent trust-folder" in why
    trust.Offer.allow_all([policy.offer])
    assert judged(load_policy("p.yaml", str(tmp_path))) == [
        "allow",
        "allow",
        "deny",
        "allow",
        "ask",
    ]
    (tmp_path / "p.yaml").write_text(ALLOWING + "\n")
    assert judged(load_policy("p.yaml", str(tmp_path))) == ["ask", "ask", "deny", "allow", "ask"]


def test_a_policy_of_the_folder_that_only_restricts_needs_no_yes(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("default: deny\nrules: [{ask: shell}]")
    policy = load_policy("p.yaml", str(tmp_path))
    assert (policy.offer, policy.remarks) == (None, ())


@pytest.mark.parametrize("how", ["absolute", "home", "variable", "named"])
def test_a_policy_that_the_user_gives_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (tmp_path / "p.yaml").write_text(ALLOWING)
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    if how == "variable":
        monkeypatch.setenv("AGENT_NB_TRUST_FOLDER", "1")
    elif how == "named":
        monkeypatch.setattr(trust, "_named_files", {str(tmp_path / "p.yaml")})
    mode, folder = {
        "absolute": (str(tmp_path / "p.yaml"), notebooks),
        "home": ("~/p.yaml", notebooks),
    }.get(how, ("p.yaml", tmp_path))
    assert judged(load_policy(mode, str(folder)))[0] == "allow"


@pytest.mark.parametrize("given", ["../p.yaml", "{0}/notebooks/p.yaml", "p.yaml"])
def test_a_policy_by_a_relative_path_or_in_the_folder_is_the_folders(
    tmp_path: Path, given: str
) -> None:
    (tmp_path / "notebooks").mkdir()
    for place in (tmp_path, tmp_path / "notebooks"):
        (place / "p.yaml").write_text(ALLOWING)
    assert judged(load_policy(given.format(tmp_path), str(tmp_path / "notebooks")))[0] == "ask"


def test_the_reason_names_the_rule() -> None:
    assert (
        parse(POLICY, "p.yaml").judge(TOOLS["shell"], {"command": "sudo x"})[1]
        == "never as root; p.yaml, line 12"
    )
    assert parse("default: deny", "p.yaml").judge(TOOLS["shell"], {"command": "x"}) == (
        "deny",
        "default of p.yaml",
    )


@pytest.mark.parametrize("default", ["allow", "ask", "deny"])
def test_the_default_is_for_tools_with_effects(default: str) -> None:
    policy = parse(f"default: {default}")
    assert policy.judge(TOOLS["write"], {})[0] == default
    assert policy.judge(TOOLS["read"], {}) == ("allow", "")


def test_a_rule_with_an_argument_the_tool_does_not_have_never_fits() -> None:
    assert (
        parse('rules: [{deny: "*", args: {nothing: "*"}}]').judge(TOOLS["read"], {"file": "x"})[0]
        == "allow"
    )


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
        ("default: maybe", "line 1: 'maybe' is not a decision; write allow, ask or deny"),
        ("default: [ask]", "is not a decision"),
        ("\nrule: []", "line 2: unknown key 'rule'; known here: default, rules"),
        ("rules: read", "line 1: `rules` must be a list"),
        (
            "rules:\n- allow: x\n  deny: y",
            "line 2: a rule needs exactly one of allow, ask and deny",
        ),
        ("rules:\n- args: {a: b}", "line 2: a rule needs exactly one"),
        ("rules:\n- allow: x\n  arg: {a: b}", "line 3: unknown key 'arg'"),
        ("rules:\n- allow: x\n  args: [a]", "line 3: expected arguments with their globs"),
        ("rules:\n- allow: {a: b}", "line 2: expected a text or a list of texts"),
        ("rules:\n- allow: x\n  args:\n    a: [[b]]", "line 4: expected a text or a list of texts"),
        ("rules:\n- allow:", "line 2: expected a text"),
        ("rules:\n- just text", "line 2: expected keys"),
        ("default: ask\ndefault: deny", "line 2: the key 'default' stands twice"),
        ("rules: [", "line 1"),
        ("[" * 5_000, "line 1: it is not YAML"),
        ('default: "\\UFFFFFFFF"', "line 1: it is not YAML"),
        ('default: "\\U00110000"', "line 1: it is not YAML"),
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
        load_policy("big.yaml", str(tmp_path))
    with pytest.raises(UsageError, match="not UTF-8"):
        load_policy("bin.yaml", str(tmp_path))


def test_a_path_that_begins_with_a_tilde_need_not_name_a_user(tmp_path: Path) -> None:
    (tmp_path / "~nobody-here.yaml").write_text("default: deny")
    assert load_policy("~nobody-here.yaml", str(tmp_path)).default == "deny"
    with pytest.raises(UsageError, match="cannot be read"):
        load_policy("~nobody-here/p.yaml")


def test_the_three_words_are_policies() -> None:
    assert [load_policy(mode).default for mode in ("ask", "auto", "deny")] == [
        "ask",
        "allow",
        "deny",
    ]
    assert Policy().default == "ask"


def test_a_restricting_glob_matches_hyphens_and_underscores_alike():
    deny, allow = (Rule(verdict, ("my-*",)) for verdict in ("deny", "allow"))
    assert deny.matches_name("my_tool", "my-*")
    assert not allow.matches_name("my_tool", "my-*")
    assert allow.matches_name("my-tool", "my-*")
