"""The tool that lists the user's variables: what it reads, who is asked, and what a replay does."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from typing import Any

import anyio
import pandas as pd
import pytest
from helpers.hostile_objects import HITS, hostile
from helpers.replays import replay

from agent_nb import Agent, Scripted
from agent_nb.agent.dependencies import CodeReader, digest_dependencies
from agent_nb.agent.recorded_turns import RecordedTurns
from agent_nb.agent.replay_approver import ReplayApprover
from agent_nb.record.record import run_record
from agent_nb.tools.approval import Approver
from agent_nb.tools.policy import Policy
from agent_nb.tools.runner import ToolRunner
from agent_nb.tools.running_call import Job
from agent_nb.tools.toolset import Toolset, available

Run = Callable[..., Any]
KEY = "my-own-key-" + "a1B2" * 8


class Kernel:
    """A host with a namespace; `calls` counts what it was asked to do on its main thread."""

    def __init__(self, **names: Any) -> None:
        self.names = names
        self.calls = 0

    async def call(self, function: Callable[[], Any]) -> Any:
        self.calls += 1
        return function()

    def namespace(self) -> dict[str, Any]:
        return self.names


def ask(run: Run, name: str = "", /, _kernel: Any = None, **args: Any) -> Any:
    args |= {"name": name} if name else {}
    return run("variables", ("variables", args), host=_kernel)[0][0]


def test_it_is_built_in_and_asks_for_a_name_and_a_number_of_rows() -> None:
    tool = Toolset.resolve("variables")["variables"]
    assert available()["variables"] == ("variables",)
    assert list(tool.spec.parameters["properties"]) == ["name", "rows"]
    assert "required" not in tool.spec.parameters
    assert tool.icon == "variables"


def test_the_list_is_read_on_the_kernels_main_thread(run: Run) -> None:
    frame = pd.DataFrame({"city": pd.Series(["Rome"], dtype=object), "temp": [21.5]})
    kernel = Kernel(df=frame, n=3, _private=1, In=[], pd=pd)
    outcome = ask(run, _kernel=kernel)
    assert (outcome.status, kernel.calls) == ("ok", 1)
    assert outcome.content.splitlines() == [
        "df: pandas.DataFrame 1×2 (city: object, temp: float64)",
        "n: int",
    ]


def test_one_variable_comes_with_its_first_rows(run: Run) -> None:
    kernel = Kernel(df=pd.DataFrame({"n": range(9)}), d={"a": [1, 2]}, text="hello", pd=pd)
    assert ask(run, "df", kernel).content == "df: pandas.DataFrame 9×1 (n: int64)\nn\n0\n1\n2"
    assert ask(run, "df", kernel, rows=1).content.endswith("\nn\n0")
    assert ask(run, "d", kernel).content == "d: dict 1 item (str: list)\n'a': list 2 items (int)"
    assert ask(run, "text", kernel).content == "text: str 5 characters\nhello"
    assert ask(run, "pd", kernel).content == "pd: module pandas"


def test_what_is_no_name_of_a_variable_is_refused_with_near_ones(run: Run) -> None:
    kernel = Kernel(df=1, frame=2, _secret="x")
    for given in ('df["a"]', "df.a", "df; x", " df"):
        outcome = ask(run, given, kernel)
        assert (outcome.status, outcome.content) == (
            "error",
            "Give the name of one variable, not an expression.",
        )
    assert ask(run, "fram", kernel).content.endswith("named 'fram'. Did you mean frame?")
    assert ask(run, "_secret", kernel).status == "error"
    assert ask(run, "df", kernel, rows=0).status == "error"


def test_no_variables_are_a_result(run: Run) -> None:
    assert ask(run, _kernel=Kernel()).content == "There are no variables."


def test_what_ipython_put_there_is_hidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(started=1, mine=2)
    shell = types.SimpleNamespace(user_ns=kernel.names, user_ns_hidden={"started": 1})
    module = types.ModuleType("IPython.core.getipython")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert ask(run, _kernel=kernel).content == "mine: int"
    shell.user_ns = {}
    assert ask(run, _kernel=kernel).content == "mine: int\nstarted: int"


def test_without_a_notebook_it_sees_what_python_has_set(record: Any) -> None:
    async def main() -> list[Any]:
        runner = ToolRunner(
            Toolset.resolve("python, variables"), approver=Approver(Policy("allow"))
        )
        await runner.run([Job("a", "python", {"code": "found = [1, 2]"})], record())
        return await runner.run([Job("b", "variables", {})], record())

    assert anyio.run(main)[0].content == "found: list 2 items (int)"


def test_without_a_notebook_and_python_it_sees_the_main_program(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = types.ModuleType("__main__")
    main.answer = 42  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert ask(run).content == "answer: int"
    monkeypatch.delitem(sys.modules, "__main__")
    assert ask(run).content == "There are no variables here: no notebook, and no main program."


def test_hostile_variables_are_listed_and_not_run(run: Run, tmp_path: Any) -> None:
    objects = hostile(tmp_path)
    kernel = Kernel(**objects)
    assert len(ask(run, _kernel=kernel).content.splitlines()) >= 30
    for name in objects:
        assert ask(run, name, kernel).content.startswith(f"{name}: ")
    assert HITS == []


def test_a_key_is_redacted_even_where_it_is_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    frame = pd.DataFrame({"key": ["x" * 20 + KEY]})
    kernel = Kernel(df=frame, key=KEY, held=["y" * 30 + KEY], by={KEY: KEY})
    told = "\n".join(ask(run, name, kernel).content for name in ("", *kernel.names))
    assert "my-own" not in told
    assert told.count("[redacted") == 5


def test_nobody_is_asked_and_a_rule_may_deny(run: Run, asker: Any) -> None:
    outcomes, record = run(
        "variables", ("variables", {}), approver=Approver(Policy(), asker()), host=Kernel(n=1)
    )
    assert outcomes[0].content == "n: int"
    assert not record.of("requested")


def test_it_runs_again_in_a_replay_and_counts_as_our_own_tool() -> None:
    tools = Toolset.resolve("variables")
    assert RecordedTurns.touches_kernel(tools["variables"])
    assert tools["variables"].effect == "reads"
    assert digest_dependencies(tools, CodeReader(folder=".")) == {}


def recorded(kernel: Kernel) -> Any:
    call = f"<execute>{json.dumps([{'name': 'variables', 'args': {}}])}</execute>"

    async def main() -> Any:
        return await Agent(Scripted([call, "ok"]), ["variables"], secrets={}, host=kernel)("go")

    return run_record(anyio.run(main).log)


def played(record: Any, kernel: Kernel) -> Any:
    async def main() -> Any:
        tape = RecordedTurns.of(record, trust=True)
        approver = ReplayApprover(tape, Policy())
        runner = ToolRunner(Toolset.resolve("variables"), approver=approver, host=kernel)
        return await replay(record, runner, trust=True)

    return anyio.run(main)


def test_a_replay_compares_what_is_there_now() -> None:
    kernel = Kernel(df=pd.DataFrame({"n": [1, 2]}))
    record = recorded(kernel)
    assert played(record, kernel).drift is None
    assert kernel.calls == 2
    drift = played(record, Kernel(df=pd.DataFrame({"n": [1, 2, 3]}))).drift
    assert drift is not None
    assert (drift.name, drift.recorded, drift.fresh) == (
        "variables",
        "df: pandas.DataFrame 2×1 (n: int64)",
        "df: pandas.DataFrame 3×1 (n: int64)",
    )
