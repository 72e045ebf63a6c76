"""Who is asked about calls of MCP tools, and what a server's own word counts."""

from pathlib import Path

import pytest
from helpers.mcp_runs import says

from agent_nb import Agent
from agent_nb.errors import UsageError
from agent_nb.tools.base import Decision

pytestmark = pytest.mark.slow


class Person:
    """Answers every question with the same decision."""

    def __init__(self, **decision):
        self.asked = []
        self._decision = Decision(**decision)

    async def __call__(self, question):
        self.asked.append(question)
        return self._decision


def statuses(run):
    return [result.status for result in run.log.of("result")]


def test_every_call_is_asked_about_even_of_a_tool_that_says_it_only_reads(ask, small):
    person = Person(allow=True, by="click")
    run = ask([small], ("echo", {"text": "hi"}), approve="ask", ask=person)
    assert statuses(run) == ["ok"]
    [question] = person.asked
    assert question.effect == "outside"
    assert (
        question.preview
        == 'The tool "echo" of the MCP server "small". The server says that it only reads.'
    )


def test_where_nobody_can_be_asked_no_call_runs(ask, small):
    assert statuses(ask([small], ("echo", {"text": "hi"}), approve="ask")) == ["denied"]


def test_a_tool_that_may_destroy_is_asked_about_in_spite_of_a_run_wide_yes(small):
    person = Person(allow=True, scope="run", by="click")
    turns = [
        [("echo", {"text": "a"})],
        [("echo", {"text": "b"})],
        [("wipe", {"name": "c"})],
        [("wipe", {"name": "d"})],
    ]
    run = Agent(says(*turns), [small], ask=person).run_sync("go")
    assert statuses(run) == ["ok"] * 4
    assert [question.name for question in person.asked] == ["echo", "wipe", "wipe"]
    assert "may change or delete things for good" in person.asked[-1].preview


def test_a_no_to_the_whole_run_holds_for_it_too(small):
    person = Person(allow=False, scope="run", by="click")
    run = Agent(
        says([("echo", {"text": "a"})], [("wipe", {"name": "b"})]), [small], ask=person
    ).run_sync("go")
    assert statuses(run) == ["denied", "denied"]
    assert len(person.asked) == 1


@pytest.fixture
def policy(tmp_path):
    def write(text):
        path = Path(tmp_path, "policy.yaml")
        path.write_text(text)
        return str(path)

    return write


def test_rules_of_a_policy_name_the_tools_by_globs_and_arguments(ask, small, policy, tmp_path):
    rules = "rules: [{deny: w*, reason: no}, {allow: echo, args: {text: 'h*'}}]"
    run = ask(
        [small], ("echo", {"text": "hi"}), ("echo", {"text": "x"}), ("wipe", {"name": "c"}),
        approve=policy(rules), folder=str(tmp_path / "elsewhere"),
    )  # fmt: skip
    assert statuses(run) == ["ok", "denied", "denied"]


def test_a_rule_for_a_tool_of_ours_allows_none_of_a_server(ask, small, policy, tmp_path):
    run = ask(
        [small], ("small_read", {}), approve=policy("rules: [{allow: read}]"), folder=str(tmp_path / "elsewhere"),
    )  # fmt: skip
    assert statuses(run) == ["denied"]


def test_a_rule_that_restricts_nothing_is_an_error_once_tools_are_known(
    ask, small, policy, tmp_path
):
    run = ask(
        [small],
        ("echo", {"text": "hi"}),
        approve=policy("rules: [{deny: wype}]"),
        folder=str(tmp_path / "elsewhere"),
    )
    assert run.status == "error"
    assert "there is no tool 'wype'" in run.log.of("error")[0].message
    assert "Did you mean 'wipe'" in run.log.of("error")[0].message
    with pytest.raises(UsageError):
        Agent(
            says([]),
            [],
            approve=policy("rules: [{deny: wype}]"),
            folder=str(tmp_path / "elsewhere"),
        ).policy()
