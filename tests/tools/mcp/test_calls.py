"""Calls of MCP tools, on a small real server behind pipes."""

import asyncio
import builtins
import json
import os
import subprocess
import sys

import pytest
from helpers.mcp_runs import alive, says, until, written

from agent_nb import Agent, mcp_server
from agent_nb.tools.mcp.hub import HUB

pytestmark = pytest.mark.slow


def test_a_run_has_the_tools_of_a_server(ask, small):
    run = ask([small], ("echo", {"text": "hi"}), ("add", {"numbers": [1, 2]}))
    assert [r.content for r in run.log.of("result")] == ["hi", {"total": 3, "of": [1, 2]}]
    assert run.status == "ok"


def test_the_record_holds_the_tools_that_the_model_was_offered(ask, small):
    run = ask([small], ("echo", {"text": "hi"}))
    [listed] = [e.payload for e in run.log.of("state") if e.kind == "mcp"]
    assert (listed["server"], listed["about"]) == ("small", "small 1.2")
    assert [tool["name"] for tool in listed["tools"]] == list(run.log[0].tools)
    echo = listed["tools"][0]
    assert echo["description"] == "Return the text."
    assert echo["parameters"]["required"] == ["text"]


def test_the_record_names_a_server_as_the_user_chose_it(ask, small):
    run = ask([small], ("echo", {"text": "hi"}))
    assert run.log[0].settings["asked_tools"] == ["mcp:small"]


def test_a_single_tool_is_asked_for_by_name(light, tmp_path, ask, monkeypatch):
    written(tmp_path, "small", light)
    monkeypatch.setenv("AGENT_NB_TRUST_MCP", "1")
    run = ask(["mcp:small/echo"], ("echo", {"text": "hi"}), folder=tmp_path)
    assert run.log[0].tools == ("echo",)
    assert run.log.of("result")[0].content == "hi"


def test_an_unknown_tool_ends_the_run_before_the_model_is_asked(ask, light, tmp_path, monkeypatch):
    written(tmp_path, "small", light)
    monkeypatch.setenv("AGENT_NB_TRUST_MCP", "1")
    run = ask(["mcp:small/ecko"], ("echo", {}), folder=tmp_path)
    assert run.status == "error"
    assert 'has no tool "ecko". Did you mean echo?' in run.log.of("error")[0].message
    assert not run.log.of("node")


def test_a_tool_named_as_one_of_ours_has_the_servers_name_before_it(ask, small):
    run = ask([small], ("small_read", {}), ("read", {"file": "x"}))
    first, second = run.log.of("result")
    assert first.content == "not the built-in one"
    assert "no tool named 'read'" in second.content


def test_two_servers_with_the_same_tools_have_names_apart(light, ask):
    pair = [mcp_server(name, light[0], light[1:]) for name in ("one", "two")]
    run = ask(pair, ("one_process", {}), ("two_process", {}))
    first, second = run.log.of("result")
    assert first.content != second.content


def test_a_server_outlives_the_run_and_is_shared(one, small):
    assert one([small], "process").content == one([small], "process").content


def test_an_error_of_a_tool_is_for_the_model(one, small):
    result = one([small], "fail", {"why": "no luck"})
    assert result.status == "error"
    assert "no luck" in result.content


def test_wrong_arguments_are_an_error_that_says_so(one, small):
    result = one([small], "add", {"numbers": "many"})
    assert result.status == "error"
    assert "list" in result.content


def test_a_picture_is_a_picture(one, small):
    result = one([small], "picture")
    assert result.content == "two by two"
    assert [p["media_type"] for p in result.attachments] == ["image/png"]


def test_progress_reaches_the_bar(ask, small):
    run = ask([small], ("steps", {"count": 3}))
    shown = run.log.of("progress")
    assert shown
    assert (shown[-1].data, shown[-1].message) == ({"done": 3.0, "total": 3.0}, "step 3")


def test_a_crash_fails_the_call_with_the_last_words_and_the_next_works(small):
    agent = Agent(says([("die", {})], [("echo", {"text": "back"})]), [small], approve="auto")
    run = agent.run_sync("go", check=False)
    first, second = run.log.of("result")
    assert first.status == "error"
    assert "ended during the call. The next call starts it again" in first.content
    assert "dying of boredom" in first.content
    assert second.content == "back"


def test_a_crash_between_runs_is_not_seen(one, light):
    server = mcp_server("light", light[0], light[1:])
    first = one([server], "process").content
    os.kill(int(first), 9)
    assert one([server], "process").content != first


def test_stopping_the_run_cancels_the_call_at_the_server(small, tmp_path):
    async def main():
        agent = Agent(says([("wait", {"folder": str(tmp_path)})]), [small], approve="auto")
        stream = agent("go", check=False).start()
        await until((tmp_path / "began").exists)
        stream.cancel()
        return await stream

    run = asyncio.run(main())
    assert run.log.of("result")[0].status == "cancelled"
    asyncio.run(until((tmp_path / "cancelled").exists))
    assert HUB.running(small)


def test_a_question_of_a_server_goes_to_the_user_of_its_call(small):
    asked = {}

    class Desk:
        def __init__(self, name, town):
            self.name, self.town = name, town

        async def call(self, function):
            said = iter(["y", self.town, ""])

            def typed(text):
                asked.setdefault(self.name, []).append(text)
                return next(said)

            builtins.input = typed
            return function()

    def agent(name, town):
        script = says([("travel", {"label": name})])
        return Agent(script, [small], approve="auto", host=Desk(name, town))

    async def main():
        return await asyncio.gather(
            *(agent(*who)("go") for who in (("Ann", "Bern"), ("Bob", "Rom")))
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "input", input)
        first, second = asyncio.run(main())
    assert first.log.of("result")[0].content == "Ann: Bern, 3 days"
    assert second.log.of("result")[0].content == "Bob: Rom, 3 days"
    assert {name: "Where to, " + name in texts[0] for name, texts in asked.items()} == {
        "Ann": True,
        "Bob": True,
    }


def test_a_question_is_declined_where_nobody_is(one, small):
    assert one([small], "travel", {"label": "x"}).content == "decline"


def test_a_call_that_takes_too_long_is_cancelled_at_the_server(program, one, tmp_path):
    quick = mcp_server("small", program[0], program[1:], timeout=0.5)
    result = one([quick], "wait", {"folder": str(tmp_path)})
    assert (result.status, "0.5 seconds" in result.content) == ("timeout", True)
    asyncio.run(until((tmp_path / "cancelled").exists))


def test_a_server_sees_no_key_and_only_the_variables_of_its_entry(light, one, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("SOME_NAME", "of mine")
    monkeypatch.setenv("NEEDED", "given on")
    made = mcp_server(
        "small", light[0], light[1:], env={"GIVEN": "${NEEDED}", "OTHER": "${NO_SUCH:-spare}"}
    )
    seen = json.loads(one([made], "environment").content)
    assert (seen["GIVEN"], seen["OTHER"]) == ("given on", "spare")
    assert not {"OPENAI_API_KEY", "SOME_NAME", "NEEDED", "AGENT_NB_PROOF"} & seen.keys()


def test_a_missing_variable_is_named(program, ask):
    made = mcp_server("small", program[0], program[1:], env={"TOKEN": "${NO_SUCH_TOKEN}"})
    run = ask([made])
    assert "needs the variable NO_SUCH_TOKEN, which is not set" in run.log.of("error")[0].message


def test_a_command_that_does_not_exist_is_an_error_that_names_it(ask):
    run = ask([mcp_server("gone", "no-such-command-here")])
    assert run.status == "error"
    assert 'The command "no-such-command-here" or its folder was not found' in run.reason


def test_a_program_that_is_no_server_fails_with_what_it_said(ask):
    code = "import sys; sys.exit('I am no server')"
    run = ask([mcp_server("wrong", sys.executable, ["-c", code])])
    message = run.log.of("error")[0].message
    assert "could not be started. It ended before it had answered" in message
    assert "I am no server" in message


def test_a_server_that_never_answers_is_given_up(ask, monkeypatch):
    monkeypatch.setattr("agent_nb.tools.mcp.session.START_TIMEOUT", 0.5)
    code = "import time; time.sleep(60)"
    run = ask([mcp_server("mute", sys.executable, ["-c", code])])
    assert "did not answer within 0.5 seconds" in run.log.of("error")[0].message


def test_a_slow_start_is_shown(light):
    slow = mcp_server("slow", light[0], light[1:], env={"SLOW": "0.3"})

    async def main():
        stream = Agent(says([]), [slow])("go", check=False)
        return [e.text async for e in stream if e.type == "delta" and e.of == "status"]

    assert asyncio.run(main()) == ["starting the MCP server slow"]


def test_a_secret_of_the_entry_is_in_no_message(program, ask):
    code = "import os, sys; sys.exit('my token is ' + os.environ['TOKEN'])"
    made = mcp_server("leaky", sys.executable, ["-c", code], env={"TOKEN": "quite-secret-value"})
    message = ask([made]).log.of("error")[0].message
    assert "my token is" in message
    assert "quite-secret-value" not in message


def test_stopping_a_run_during_the_start_leaves_no_process(program, tmp_path):
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"

    async def main():
        stream = Agent(says([]), [mcp_server("mute", sys.executable, ["-c", code])])(
            "go", check=False
        )
        stream.start()
        await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        stream.cancel()
        return await stream

    run = asyncio.run(main())
    assert run.status == "interrupted"
    pid = int((tmp_path / "pid").read_text())
    asyncio.run(until(lambda: not alive(pid)))


def test_servers_end_with_the_process(light):
    code = f"""
import json
from agent_nb import Agent, Scripted, mcp_server
server = mcp_server("light", {light[0]!r}, {light[1:]!r})
script = Scripted(['<execute>[{{"name": "process", "args": {{}}}}]</execute>', "done"])
run = Agent(script, [server], approve="auto").run_sync("go")
print(run.log.of("result")[0].content)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stderr == ""
    assert not alive(int(ended.stdout))
