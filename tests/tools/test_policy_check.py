"""A policy about tools that do not exist is noticed: an error where it would restrict, a remark
where it would allow.
"""

from __future__ import annotations

from typing import Any

import pytest

from agent_nb import Agent, Run, Scripted, tool
from agent_nb.errors import UsageError
from agent_nb.tools.policy import Policy
from agent_nb.tools.policy_check import check_rules
from agent_nb.tools.policy_file import parse
from agent_nb.tools.toolset import Toolset


@tool(effect="outside", name="post")
def send(text: str, times: int = 1) -> str:
    """Send."""
    return text


@tool
def anything(**fields: Any) -> str:
    """Take anything."""
    return "x"


def helper(path: str) -> str:
    """Help."""
    return path


def check(rules: str, tools: Any = (), namespace: Any = None, mentioned: Any = tuple) -> Policy:
    return check_rules(
        parse(f"rules: [{rules}]", "p.yaml"), Toolset.resolve(tools), namespace, mentioned
    )


@pytest.mark.parametrize("verdict", ["ask", "deny"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("shel", "Did you mean 'shell'?"),
        ("wirte", "Did you mean 'write'?"),
        ("pots", "Did you mean 'post'?"),
        ("zzz", "so this rule"),
    ],
)
def test_a_restricting_rule_about_an_unknown_tool_is_an_error_with_a_hint(
    verdict: str, name: str, hint: str
) -> None:
    with pytest.raises(UsageError) as raised:
        check(f"{{{verdict}: {name}}}", [send])
    said = str(raised.value)
    assert said.startswith(
        f"p.yaml, line 1: there is no tool {name!r}, so this rule restricts nothing."
    )
    assert hint in said


def test_an_allowing_rule_about_a_tool_that_is_nowhere_is_a_remark() -> None:
    policy = check("{allow: [read, raed]}, {allow: post, args: {txt: x}}", [send])
    assert [remark.partition(":")[0] for remark in policy.remarks] == ["p.yaml, line 1"] * 2
    assert (
        "there is no tool 'raed', so this rule allows nothing. Did you mean 'read'?"
        in policy.remarks[0]
    )
    assert "post has no argument 'txt'" in policy.remarks[1]


@pytest.mark.parametrize(
    "name", ["post", "POST", "shell", "Shell", "list", "helper", "later", "my-later"]
)
def test_tools_of_the_run_of_the_notebook_built_in_or_installed_are_known(name: str) -> None:
    namespace = {"helper": helper, "x": 1}
    check(f"{{deny: {name}}}", [send], namespace, lambda: ["later", "my later"])


def test_what_cannot_be_a_tool_is_not_known() -> None:
    for name in ("x", "int"):
        with pytest.raises(UsageError):
            check(f"{{deny: {name}}}", (), {"x": 1, "int": int, "y": "deny"})


def test_the_notebook_is_not_read_for_names_that_are_known() -> None:
    def read() -> list[str]:
        raise AssertionError

    check("{deny: [post, shell]}, {allow: '*'}", [send], {}, read)


@pytest.mark.parametrize("glob", ["'zzz*'", "'*'", "'?hell'", "'[a-z]*'"])
def test_a_glob_may_stand_for_what_is_not_there(glob: str) -> None:
    assert check(f"{{deny: {glob}}}").remarks == ()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "{deny: write, args: {path: x}}",
            "write has no argument 'path', so this rule never fits a call of it. Arguments: content, file.",
        ),
        ("{deny: write, args: {fiel: x}}", "Did you mean 'file'?"),
        (
            "{ask: post, args: {text: x, time: x}}",
            "post has no argument 'time', so this rule never fits a call of it. Did you mean 'times",
        ),
        ("{deny: [read, list], args: {file: x}}", "list has no argument 'file'"),
        (
            "{deny: '*', args: {comand: x}}",
            "* has no argument 'comand', so this rule never fits a call of it. Did you mean 'command'?",
        ),
        ("{deny: 'w*', args: {command: x}}", "w* has no argument 'command'"),
        ("{deny: '*', args: {command: x, content: y}}", "* has no argument 'command and content'"),
        ("{deny: helper, args: {file: x}}", "helper has no argument 'file'"),
    ],
)
def test_a_restricting_rule_with_an_argument_that_no_call_has_is_an_error(
    rule: str, said: str
) -> None:
    with pytest.raises(UsageError) as raised:
        check(rule, [send], {"helper": helper})
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "rule",
    [
        "{deny: write, args: {file: x, content: y}}",
        "{deny: '*', args: {command: x}}",
        "{deny: anything, args: {whatever: x}}",
        "{deny: later, args: {whatever: x}}",  # its schema is not known
        "{deny: 'lat*', args: {whatever: x}}",
    ],
)
def test_arguments_that_a_call_may_have_are_no_fault(rule: str) -> None:
    check(rule, [anything], {}, lambda: ["later"])


def test_a_run_does_not_begin_with_such_a_policy(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text("rules: [{deny: shel}]")
    agent = Agent(Scripted(["done"]), [send], approve="p.yaml", folder=tmp_path, namespace={})
    with pytest.raises(UsageError, match="Did you mean 'shell'"):
        agent("go")


def test_a_remark_is_told_in_the_run(tmp_path: Any) -> None:
    (tmp_path / "p.yaml").write_text("rules: [{allow: shel}]")
    run: Run = Agent(
        Scripted(["done"]), [send], approve="p.yaml", folder=tmp_path, namespace={}
    ).run_sync("go")
    remarks = [e.message for e in run.events.of("error") if e.code == "policy"]
    assert [remark.partition(" ")[0] for remark in remarks] == ["p.yaml", "p.yaml,"]
    assert "It counts only when you allow it" in remarks[0]
    assert "Did you mean 'shell'?" in remarks[1]
    assert (run.status, run.error) == ("ok", "")


def test_functions_of_the_script_are_known_to_its_agents(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import __main__

    (tmp_path / "p.yaml").write_text("rules: [{deny: of_the_script}]")
    monkeypatch.setattr(__main__, "of_the_script", helper, raising=False)
    assert (
        Agent(Scripted(["done"]), approve="p.yaml", folder=tmp_path).run_sync("go").answer == "done"
    )
