"""The gate: who is asked about what, what an answer means, and what happens when nobody
is there.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from agent_nb import Agent, Scripted
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.replay_approver import ReplayApprover
from agent_nb.errors import ToolError, UsageError
from agent_nb.tools.approval import Approver
from agent_nb.tools.base import Decision, Question, Tool, ToolContext
from agent_nb.tools.decorator import as_tool, tool
from agent_nb.tools.kernel_permissions import KernelPermissions
from agent_nb.tools.mcp.described import ListedTool, make_tool
from agent_nb.tools.mcp.server import Server
from agent_nb.tools.policy_file import load_policy, parse
from agent_nb.tools.runner import ToolRunner
from agent_nb.tools.running_call import Job
from agent_nb.tools.toolset import Toolset

Run = Callable[..., Any]


def look() -> str:
    """Without effects."""
    return "seen"


@tool(
    effect="outside",
    preview=lambda args, context: f"would send {args['text']} from {context.folder}",
)
def send(text: str, times: int = 1) -> str:
    return f"sent {text} {times}"


@tool(effect="kernel")
def change() -> str:
    return "changed"


TOOLS = [look, send, change]


def approver(mode: str, ask: Any = None, folder: str = ".") -> Approver:
    """Make the gate of a run."""
    return Approver(load_policy(mode, folder), ask)


@pytest.mark.parametrize(
    ("mode", "statuses"),
    [
        ("ask", ["ok", "denied", "denied"]),
        ("auto", ["ok", "ok", "ok"]),
        ("deny", ["ok", "denied", "denied"]),
    ],
)
def test_the_modes_without_anybody_to_ask(run: Run, mode: str, statuses: list[str]) -> None:
    outcomes, _ = run(
        TOOLS, ("look", {}), ("send", {"text": "x"}), ("change", {}), approver=approver(mode)
    )
    assert [o.status for o in outcomes] == statuses


def test_nobody_to_ask_is_a_denial_that_says_how_to_allow(run: Run) -> None:
    outcomes, record = run(TOOLS, ("send", {"text": "x"}), approver=approver("ask"))
    assert "--approve auto" in outcomes[0].content
    assert "--approve POLICY.yaml" in outcomes[0].content
    assert record.kinds("c1") == ["requested", "decided", "end"]
    assert record.of("decided")[0]["decision"] == "deny"


def test_a_rule_to_ask_of_a_file_not_yet_allowed_says_how_to_allow(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text("rules: [{ask: send}, {allow: change}]")
    calls = ("send", {"text": "x"}), ("change", {})
    outcomes, _ = run(TOOLS, *calls, approver=approver("p.yaml", None, str(tmp_path)))
    assert "--approve auto" in outcomes[0].content
    assert "%agent trust-folder" in outcomes[1].content


def test_the_question_holds_the_checked_arguments_and_the_preview(run: Run, asker: Any) -> None:
    ask = asker(Decision(True, by="click"))
    outcomes, record = run(
        TOOLS, ("send", {"text": "x", "times": "2"}), approver=approver("ask", ask), folder="F"
    )
    [question] = ask.questions
    assert msgspec.structs.replace(question, tool=None) == Question(
        "c1", "send", {"text": "x", "times": 2}, "outside", "would send x from F"
    )
    assert question.find_fault({"text": "x"}) == ""
    assert "times" in question.find_fault({"text": "x", "times": "many"})
    assert outcomes[0].content == "sent x 2"
    assert record.kinds("c1") == ["requested", "decided", "started", "end"]
    assert record.of("requested")[0] == {
        "stage": "requested",
        "args": {"text": "x", "times": 2},
        "extra": {"preview": "would send x from F"},
    }
    assert record.of("decided")[0] == {
        "stage": "decided",
        "args": {"text": "x", "times": 2},
        "decision": "allow",
        "scope": "once",
        "by": "click",
        "reason": "",
    }


@pytest.mark.parametrize(
    "bulk", [[0] * 20_000, json.loads('{"a": ' * 50 + "1" + "}" * 50)], ids=["long", "deep"]
)
def test_arguments_that_a_question_could_not_show_whole_run_nothing(
    run: Run, asker: Any, bulk: Any
) -> None:
    sent: list[Any] = []
    base = make_tool(Server(name="s", command="c"), ListedTool("query", "", {}), "query")
    query = msgspec.structs.replace(
        base, invoke=lambda **values: sent.append(values), thread="worker"
    )
    outcomes, _ = run(
        [query],
        ("query", {"bulk": bulk, "sql": "DROP TABLE a"}),
        approver=approver("ask", asker(Decision(True))),
    )
    assert outcomes[0].status == "error"
    assert "nested too deeply" in outcomes[0].content
    assert not sent


def test_tools_without_effects_are_neither_asked_about_nor_reported(run: Run, asker: Any) -> None:
    ask = asker()
    _, record = run(TOOLS, ("look", {}), approver=approver("ask", ask))
    assert ask.questions == []
    assert record.kinds("c1") == ["started", "end"]


def test_a_refusal_and_its_reason_go_to_the_model(run: Run, asker: Any) -> None:
    ask = asker(Decision(False, by="click", reason="not today"), Decision(False, by="click"))
    outcomes, _ = run(
        TOOLS, ("send", {"text": "x"}), ("send", {"text": "y"}), approver=approver("ask", ask)
    )
    assert [(o.status, o.content) for o in outcomes] == [
        ("denied", "Not run: the user said no: not today."),
        ("denied", "Not run: the user said no."),
    ]


def test_a_yes_for_these_arguments_asks_about_others(run: Run, asker: Any) -> None:
    """The first one counts for the arguments as they were edited."""
    yes = Decision(True, scope="args", by="click")
    ask = asker(yes, Decision(True, args={"text": "b"}, scope="args", by="click"), yes)
    texts = ("x", "x", "a", "b", "x", "c")
    outcomes, record = run(
        TOOLS, *(("send", {"text": text}) for text in texts), approver=approver("ask", ask)
    )
    assert [q.args["text"] for q in ask.questions] == ["x", "a", "c"]
    assert [o.content for o in outcomes] == [
        "sent x 1",
        "sent x 1",
        "sent b 1",
        "sent b 1",
        "sent x 1",
        "sent c 1",
    ]
    assert [d["scope"] for d in record.of("decided")] == ["args"] * 6
    assert record.of("decided")[1]["reason"] == "decided earlier for these arguments"


@pytest.mark.parametrize(
    "make",
    [
        lambda ask: approver("ask", ask),
        lambda ask: ReplayApprover(RecordedTurns(events=()), ask=ask),  # of a foreign record
    ],
    ids=["live", "replayed"],
)
def test_a_yes_for_a_large_number_is_not_one_for_its_neighbour(
    run: Run, asker: Any, make: Any
) -> None:
    """As floats, which JavaScript reads, both are one number."""
    yes = Decision(True, scope="args", by="click")
    ask = asker(yes, yes)
    gate = make(ask)
    for number in (2**60, 2**60, 2**60 + 1):
        run(TOOLS, ("send", {"text": "x", "times": number}), approver=gate)
    assert [q.args["times"] for q in ask.questions] == [2**60, 2**60 + 1]


def test_edited_arguments_are_validated_and_used(run: Run, asker: Any) -> None:
    ask = asker(Decision(True, args={"text": "better", "times": "3"}, by="click"))
    outcomes, record = run(TOOLS, ("send", {"text": "x"}), approver=approver("ask", ask))
    assert outcomes[0].content == "sent better 3"
    assert record.of("decided")[0]["args"] == {"text": "better", "times": "3"}


def test_edited_arguments_that_do_not_fit_are_an_error_and_nothing_runs(
    run: Run, asker: Any
) -> None:
    ask = asker(Decision(True, args={"txt": "better"}, by="click"))
    outcomes, record = run(TOOLS, ("send", {"text": "x"}), approver=approver("ask", ask))
    assert outcomes[0].status == "error"
    assert "txt: is not a parameter" in outcomes[0].content
    assert record.of("started") == []


@pytest.mark.parametrize(("scope", "asked"), [("once", 3), ("tool", 2), ("run", 1)])
@pytest.mark.parametrize("allow", [True, False])
def test_an_answer_holds_for_its_scope(
    run: Run, asker: Any, scope: Any, asked: int, allow: bool
) -> None:
    answers = [Decision(allow, scope=scope, by="click")] + [Decision(allow, by="click")] * 2
    ask = asker(*answers)
    calls = [("send", {"text": "x"}), ("send", {"text": "y"}), ("change", {})]
    outcomes, record = run(TOOLS, *calls, approver=approver("ask", ask))
    assert len(ask.questions) == asked
    assert {o.status for o in outcomes} == {"ok" if allow else "denied"}
    assert len(record.of("requested")) == asked
    assert len(record.of("decided")) == 3
    assert {d["by"] for d in record.of("decided")} == {"click"}


class TestForThisNotebook:
    def gate(self, mode: str, ask: Any, standing: KernelPermissions) -> Approver:
        return Approver(load_policy(mode), ask, standing)

    def test_a_yes_counts_for_the_tool_in_later_runs(self, run: Run, asker: Any) -> None:
        standing, ask = (
            KernelPermissions(),
            asker(Decision(True, scope="kernel", by="click"), Decision(False, by="click")),
        )
        for text in "xy":
            outcomes, _ = run(
                TOOLS, ("send", {"text": text}), approver=self.gate("ask", ask, standing)
            )
            assert outcomes[0].status == "ok"
        assert len(ask.questions) == 1
        outcomes, _ = run(TOOLS, ("change", {}), approver=self.gate("ask", ask, standing))
        assert outcomes[0].status == "denied", "it is about one tool"

    def test_it_stands_in_no_event(self, run: Run, asker: Any) -> None:
        ask = asker(Decision(True, scope="kernel", by="click"))
        _, record = run(
            TOOLS, ("send", {"text": "x"}), approver=self.gate("ask", ask, KernelPermissions())
        )
        assert [d["scope"] for d in record.of("decided")] == ["tool"]

    def test_once_revoked_it_is_asked_about_again(self, run: Run, asker: Any) -> None:
        standing, ask = (
            KernelPermissions(),
            asker(Decision(True, scope="kernel", by="click"), Decision(False, by="click")),
        )
        gate = self.gate("ask", ask, standing)
        run(TOOLS, ("send", {"text": "x"}), approver=gate)
        assert standing.names == ["send"]
        assert standing.revoke("send")
        outcomes, _ = run(TOOLS, ("send", {"text": "y"}), approver=gate)
        assert (outcomes[0].status, len(ask.questions)) == ("denied", 2)

    def test_a_denial_by_policy_always_wins(self, run: Run, asker: Any) -> None:
        standing = KernelPermissions()
        run(
            TOOLS,
            ("send", {"text": "x"}),
            approver=self.gate("ask", asker(Decision(True, scope="kernel", by="click")), standing),
        )
        outcomes, _ = run(
            TOOLS, ("send", {"text": "y"}), approver=self.gate("deny", asker(), standing)
        )
        assert outcomes[0].status == "denied"

    def test_a_no_is_not_kept(self, run: Run, asker: Any) -> None:
        standing = KernelPermissions()
        run(
            TOOLS,
            ("send", {"text": "x"}),
            approver=self.gate("ask", asker(Decision(False, scope="kernel", by="click")), standing),
        )
        assert standing.names == []

    def test_where_it_may_not_be_used_such_a_yes_counts_for_the_run(
        self, run: Run, asker: Any
    ) -> None:
        ask = asker(Decision(True, scope="kernel", by="click"))
        gate = Approver(load_policy("ask"), ask, None)
        outcomes, _ = run(TOOLS, ("send", {"text": "x"}), ("send", {"text": "y"}), approver=gate)
        assert ([o.status for o in outcomes], len(ask.questions)) == (["ok", "ok"], 1)

    def test_another_tool_of_the_same_name_is_asked_about(self) -> None:
        standing, known = KernelPermissions(), Toolset.resolve([send])["send"]
        standing.allow(known)
        other = msgspec.structs.replace(
            known, spec=msgspec.structs.replace(known.spec, description="Send it to everybody.")
        )
        assert standing.allows(known)
        assert not standing.allows(other)
        assert not standing.allows(msgspec.structs.replace(known, effect="kernel"))


def test_edited_arguments_are_not_carried_over_to_later_calls(run: Run, asker: Any) -> None:
    ask = asker(Decision(True, args={"text": "edited"}, scope="tool", by="click"))
    outcomes, _ = run(
        TOOLS, ("send", {"text": "x"}), ("send", {"text": "y"}), approver=approver("ask", ask)
    )
    assert [o.content for o in outcomes] == ["sent edited 1", "sent y 1"]


def test_questions_are_asked_one_at_a_time(run: Run) -> None:
    open_: list[str] = []
    most: list[int] = []

    async def ask(question: Question) -> Decision:
        open_.append(question.call_id)
        most.append(len(open_))
        await asyncio.sleep(0)
        open_.remove(question.call_id)
        return Decision(True, by="click")

    outcomes, _ = run(
        TOOLS, *[("send", {"text": str(n)}) for n in range(5)], approver=approver("ask", ask)
    )
    assert most == [1] * 5
    assert [o.status for o in outcomes] == ["ok"] * 5


def test_other_calls_run_while_a_question_is_open(run: Run, record: Any) -> None:
    kept: list[Any] = []

    async def ask(question: Question) -> Decision:
        await kept[0].seen("end")
        return Decision(True, by="click")

    async def main() -> None:
        kept.append(record())
        runner = ToolRunner(Toolset.resolve(TOOLS), approver=approver("ask", ask), limit=1)
        await runner.run([Job("1", "send", {"text": "x"}), Job("2", "look", {})], kept[0])

    anyio.run(main)
    assert [c for k, c, _ in kept[0].all if k == "end"] == ["2", "1"]


def test_an_asker_that_fails_is_a_denial(run: Run, asker: Any) -> None:
    outcomes, _ = run(
        TOOLS,
        ("send", {"text": "x"}),
        approver=approver("ask", asker(RuntimeError("no front end"))),
    )
    assert outcomes[0].status == "denied"
    assert "RuntimeError: no front end" in outcomes[0].content


def test_an_open_question_ends_when_the_run_is_stopped(record: Any) -> None:
    closed: list[str] = []

    async def ask(question: Question) -> Decision | None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(question.call_id)
        return None

    async def main() -> Any:
        kept = record()
        runner = ToolRunner(Toolset.resolve(TOOLS), approver=approver("ask", ask))
        jobs = [Job("1", "send", {"text": "x"}), Job("2", "send", {"text": "y"})]
        task = asyncio.create_task(runner.run(jobs, kept))
        await kept.seen("requested")
        task.cancel()
        await asyncio.wait([task])
        return kept

    kept = anyio.run(main)
    assert closed == ["1"]
    assert [o.status for o in kept.of("end")] == ["cancelled", "cancelled"]


def test_a_preview_that_finds_the_call_impossible_is_its_result(run: Run, asker: Any) -> None:
    def preview(args: dict[str, Any], context: ToolContext) -> str:
        raise ToolError("There is no such file.")

    @tool(effect="outside", preview=preview)
    def edit() -> None: ...

    ask = asker()
    outcomes, _ = run([edit], ("edit", {}), approver=approver("ask", ask))
    assert (outcomes[0].status, outcomes[0].content) == ("error", "There is no such file.")
    assert ask.questions == []


def test_a_preview_that_breaks_does_not_prevent_the_question(run: Run, asker: Any) -> None:
    @tool(effect="outside", preview=lambda args, context: args["missing"])
    def edit() -> str:
        return "edited"

    ask = asker(Decision(True, by="click"))
    assert run([edit], ("edit", {}), approver=approver("ask", ask))[0][0].content == "edited"
    assert ask.questions[0].preview == "(no preview: KeyError: 'missing')"


def test_the_decision_of_a_mode_or_a_rule_is_reported_with_its_reason(run: Run) -> None:
    _, auto = run(TOOLS, ("send", {"text": "x"}), approver=approver("auto"))
    assert (auto.of("decided")[0]["by"], auto.of("decided")[0]["reason"]) == (
        "policy",
        "--approve auto",
    )
    rules = parse("rules:\n- deny: look\n  reason: nothing to see\n", "p.yaml")
    outcomes, ruled = run(TOOLS, ("look", {}), approver=Approver(rules))
    assert ruled.of("decided")[0]["reason"] == "nothing to see; p.yaml, line 2"
    assert outcomes[0].content == "Not run: nothing to see; p.yaml, line 2."


def test_a_policys_denial_stands_above_an_answer_for_the_run(run: Run, asker: Any) -> None:
    rules = parse('rules:\n- deny: send\n  args: {text: "secret*"}\n')
    ask = asker(Decision(True, scope="run", by="click"))
    outcomes, _ = run(
        TOOLS,
        ("send", {"text": "x"}),
        ("send", {"text": "secret 1"}),
        ("change", {}),
        approver=Approver(rules, ask),
    )
    assert [o.status for o in outcomes] == ["ok", "denied", "ok"]


EDITED = (
    'rules: [{deny: send, args: {text: "secret*"}, reason: never}, {ask: send, args: {text: "?*"}}]'
)


@pytest.mark.parametrize("by", ["click", "remote"])
def test_edited_arguments_are_judged_again_and_the_model_hears_a_denial(
    run: Run, asker: Any, by: str
) -> None:
    ask = asker(Decision(True, args={"text": "secret 1"}, by=by))
    outcomes, record = run(
        TOOLS, ("send", {"text": "x"}), approver=Approver(parse(EDITED, "p.yaml"), ask)
    )
    assert outcomes[0].status == "denied"
    assert (
        outcomes[0].content
        == "Not run: the policy denies it with the edited arguments (never; p.yaml, line 1)."
    )
    decided = record.of("decided")[0]
    assert (decided["decision"], decided["by"], decided["args"]) == (
        "deny",
        "policy",
        {"text": "secret 1"},
    )
    assert record.of("started") == []


def test_edited_arguments_are_judged_as_the_tool_gets_them(run: Run, asker: Any) -> None:
    rules = parse('rules: [{deny: send, args: {times: "3"}}]')
    ask = asker(Decision(True, args={"text": "x", "times": " 3 "}, by="click"))
    assert (
        run(TOOLS, ("send", {"text": "x"}), approver=Approver(rules, ask))[0][0].status == "denied"
    )


def test_edited_arguments_that_would_be_asked_about_are_not_asked_again(
    run: Run, asker: Any
) -> None:
    ask = asker(Decision(True, args={"text": "better"}, by="click"))
    outcomes, _ = run(TOOLS, ("send", {"text": "x"}), approver=Approver(parse(EDITED), ask))
    assert outcomes[0].content == "sent better 1"
    assert len(ask.questions) == 1


def test_a_rule_can_ask_about_a_tool_without_effects(run: Run, asker: Any) -> None:
    ask = asker(Decision(True, by="click"))
    run(TOOLS, ("look", {}), approver=Approver(parse("rules: [{ask: look}]"), ask))
    assert [q.name for q in ask.questions] == ["look"]


def test_a_policy_file_is_found_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("default: deny\n")
    assert approver("p.yaml", None, str(tmp_path)).policy.default == "deny"
    with pytest.raises(UsageError, match="choose ask, auto or deny"):
        approver("sometimes")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        approver("other.yaml", None, str(tmp_path))


SERVER = {"name": "mail", "command": "mail-server", "args": ("--stdio",), "env": {"TOKEN": "a"}}


def offer(**changes: Any) -> Tool:
    """Return a tool of an MCP server, with changes of the server or of what it says of the tool."""
    said = {"name": "send", "description": "Send.", "parameters": {"type": "object"}}
    own = {k: v for k, v in changes.items() if k in ("destructive", *said)}
    server = {**SERVER, **{k: v for k, v in changes.items() if k not in own}}
    return make_tool(Server(**server), ListedTool(**{**said, **own}), "send")


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"command": "another-server"},
        {"args": ("--stdio", "--all")},
        {"command": "", "args": (), "env": {}, "url": "https://mail.example/mcp"},
        {"env": {"TOKEN": "a", "PATH": "/tmp"}},
        {"cwd": "elsewhere"},
        {"file": "/other/.mcp.json"},
        {"destructive": True},
        {"description": "Send it all."},
    ],
    ids="-".join,
)
def test_a_remembered_yes_is_for_one_tool_of_one_server(change: dict[str, Any]) -> None:
    standing = KernelPermissions()
    standing.allow(offer())
    assert standing.allows(offer())
    assert standing.allows(offer(env={"TOKEN": "renewed"}))
    assert not standing.allows(offer(**change))


def define(text: str, file: str) -> Any:
    """Define a function in the notebook and return it."""
    lines = text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), names)
    return names["act"]


def test_a_remembered_yes_is_for_the_code_of_a_python_tool() -> None:
    standing = KernelPermissions()
    first = "def act(path: str) -> str:\n    return path\n"
    standing.allow(as_tool(define(first, "one")))
    assert standing.allows(as_tool(define(first, "two"))), "a cell that ran again"
    other = first.replace("return path", "return open(path).read()")
    assert not standing.allows(as_tool(define(other, "three")))


def test_what_a_tool_uses_counts_below_the_current_folder(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab_sender.py").write_text("def act(path: str) -> str:\n    return path\n")
    monkeypatch.syspath_prepend(tmp_path)
    standing, sender = KernelPermissions(), as_tool(importlib.import_module("lab_sender").act)
    monkeypatch.chdir(tmp_path)
    standing.allow(sender)
    assert standing.allows(sender)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert not standing.allows(sender)


def test_a_yes_for_an_agent_is_for_its_tools() -> None:
    def make(*tools: Any) -> Tool:
        return Agent(Scripted([]), tools, name="helper").as_tool()

    standing = KernelPermissions()
    standing.allow(make(look))
    assert standing.allows(make(look))
    assert not standing.allows(make(look, send))


def test_a_yes_for_the_run_is_for_one_tool_of_one_server(asker: Any, record: Any) -> None:
    gate = approver("ask", asker(Decision(True, scope="tool"), Decision(False)))

    async def decide(one: Tool) -> Decision:
        return await gate.decide(one, {}, ToolContext(call_id="c"), record())

    async def both() -> list[bool]:
        found = [await decide(offer()), await decide(offer()), await decide(offer(name="other"))]
        return [each.allow for each in found]

    assert anyio.run(both) == [True, True, False]
