"""Runs of Python code in a cell: shown while it awaits them, stopped, asked about, recorded once,
and shown again.
"""

import json

import pytest

from agent_nb.errors import UsageError
from agent_nb.record.record import RECORD_MIME
from agent_nb.view.visible import show_output

SETUP = """
%load_ext agent_nb
import asyncio
from agent_nb import Agent, Scripted, tool

@tool(effect="outside")
def touch(name: str) -> str:
    "Touch a thing."
    return f"touched {name}"

@tool
async def delegate() -> str:
    "Let another agent answer."
    return (await Agent(Scripted(["Inner."]))("hi")).answer

def calling(name, /, **args):
    return Scripted(['<execute>' + __import__('json').dumps([{"name": name, "args": args}]) + '</execute>', "Done."])

def slow():
    return Scripted([{"chunks": ["One ", "two."], "delay": 100}])
"""
WAIT = """
for _ in range(1000):
    if {}: break
    await asyncio.sleep(0.02)
"""


@pytest.fixture(scope="module")
def ready(kernel):
    status, said, _ = kernel.run(SETUP)
    assert status == "ok", said
    return kernel


@pytest.mark.kernel
def test_an_awaited_run_is_shown_as_it_stays_with_its_record_once(ready):
    status, said, shown = ready.run(
        "run = await Agent(Scripted(['Hello **there**.']))('hi')\nrun", cell="one"
    )
    assert status == "ok", said
    (display,) = shown.values()
    assert "<strong>there</strong>" in display["data"]["text/html"]
    assert display["data"][RECORD_MIME]["cell"] == "one"
    assert display["data"][RECORD_MIME]["signature"]
    assert ready.run("print(run is _agent, run.cell, len(run.log))")[1].split()[:2] == [
        "True",
        "one",
    ]


@pytest.mark.kernel
def test_a_run_shows_itself_as_one_line_beside_its_cards_else_as_cards(ready):
    code = "run = await Agent(Scripted(['Hello.']))('hi')\nprint(sorted(run._repr_mimebundle_()))"
    assert ready.run(code)[1].strip() == "['text/plain']"
    assert "text/html" in ready.run("print(sorted(run._repr_mimebundle_()))")[1]


@pytest.mark.kernel
def test_an_awaited_run_that_failed_leaves_its_cards_and_fails_its_line(
    ready,
):
    failing = "Agent(Scripted([{'error': {'status': 401, 'message': 'bad key'}}]))"
    status, said, shown = ready.run(
        f"def ask():\n    return {failing}('hi')\nawait ask()", cell="failed"
    )
    said = show_output(said)  # without colours
    assert status == "error"
    assert "RunFailed: The run failed: bad key" in said
    assert "await ask()" in said
    assert "_wait" not in said
    (display,) = shown.values()
    assert "bad key" in display["data"]["text/html"]
    assert display["data"][RECORD_MIME]["status"] == "error"
    assert ready.run("print(_agent.status, _agent.cell)")[1].split() == ["error", "failed"]


@pytest.mark.kernel
def test_a_run_without_a_view_leaves_its_record_and_shows_nothing(ready):
    status, said, shown = ready.run("run = await Agent(Scripted(['Hello.']))('hi', view=None)")
    assert (status, said) == ("ok", "")
    assert [set(display["data"]) for display in shown.values()] == [{RECORD_MIME}]


@pytest.mark.kernel
def test_a_run_inside_a_tool_is_not_shown_by_itself(ready):
    status, said, shown = ready.run("run = await Agent(calling('delegate'), [delegate])('go')")
    assert status == "ok", said
    # its record stands alone
    assert sorted(len(display["data"]) > 1 for display in shown.values()) == [False, True]
    assert ready.run("print(run.log.of('result')[0].content)")[1].strip() == "Inner."


@pytest.mark.kernel
def test_an_interrupt_stops_the_run_and_the_cell(ready):
    mark = json.dumps(str(ready.mark))
    code = f"stream = Agent(slow())('hi')\nasyncio.get_running_loop().call_later(0.3, open, {mark}, 'w')\nawait stream\nprint('went on')"
    request = ready.send(code)
    ready.marked()
    ready.interrupt()
    status, said, shown = ready.finish(request)
    assert (status, said) == (
        "error",
        "agent: stopped (kernel interrupt); what is queued behind this cell does not run",
    )
    assert len(shown) == 1
    assert ready.run("print(stream.run.status, _agent is stream.run)")[1].split() == [
        "interrupted",
        "True",
    ]


@pytest.mark.kernel
def test_a_question_is_asked_on_the_keyboard_where_there_are_no_buttons(ready):
    request = ready.send(
        "run = await Agent(calling('touch', name='a'), [touch])('go', view='html')", stdin=True
    )
    asked = ready.client.get_stdin_msg(timeout=60)
    assert "touch" in asked["content"]["prompt"]
    ready.client.input("y")
    assert ready.finish(request)[0] == "ok"
    assert (
        ready.run("print(run.log.of('result')[0].content, run.log.of('approval')[1].by)")[1].strip()
        == "touched a stdin"
    )


@pytest.mark.kernel
def test_a_run_that_goes_on_is_shown_again_and_stopped_there(ready):
    status, said, shown = ready.run(
        "stream = Agent(slow())('hi').start()\nawait asyncio.sleep(0.1)\nstream.run.show('html')"
    )
    assert (status, len(shown)) == ("ok", 1), said
    update = "stream.stop()\n" + WAIT.format("stream.log.ended")
    assert ready.run(update)[0] == "ok"
    assert ready.run("print(stream.run.status)")[1].strip() == "interrupted"


@pytest.mark.kernel
def test_agent_show_is_live_while_the_run_goes_on(ready):
    ready.run("stream = Agent(slow())('hi').start()\nawait asyncio.sleep(0.1)")
    run = ready.run("print(stream.log.run)")[1].strip()
    status, said, shown = ready.run(f"%agent show {run}")
    assert (status, len(shown)) == ("ok", 1), said
    (display,) = shown.values()
    assert display["metadata"]["agent_nb"] == {"live": run}
    assert "Stop" not in display["data"]["text/html"]
    assert ">hi<" in display["data"]["text/html"]
    ready.run("stream.stop()\n" + WAIT.format("stream.log.ended"))


@pytest.mark.kernel
def test_a_run_that_is_over_is_shown_as_it_stays_without_a_second_record(ready):
    ready.run("run = await Agent(Scripted(['Hello.']))('hi', view=None)")
    _, said, shown = ready.run("run.show('html')")
    assert said == ""
    assert set(next(iter(shown.values()))["data"]) == {"text/html", "text/markdown", "text/plain"}


@pytest.mark.kernel
def test_a_run_that_is_over_is_shown_without_widgets(ready):
    ready.run("run = await Agent(Scripted(['Hello.']))('hi', view=None)")
    _, said, shown = ready.run("run.show()", cell="w")
    assert said == ""
    assert [set(display["data"]) for display in shown.values()] == [
        {"text/html", "text/markdown", "text/plain"}
    ]


def test_an_unknown_view_is_refused_with_the_known_ones(shell, run):
    async def awaited():
        from agent_nb import Agent, Scripted

        await Agent(Scripted(["Hello."]))("hi", view="pictures")

    with pytest.raises(UsageError, match="widgets"):
        run(awaited())


def test_without_a_kernel_an_awaited_run_is_only_shown_when_asked_for(shell, run, capsys):
    from agent_nb import Agent, Scripted

    async def awaited(**options):
        return await Agent(Scripted(["Hello there."]))("hi", **options)

    run(awaited())
    assert capsys.readouterr().out == ""
    run(awaited(view="text"))
    assert "Hello there." in capsys.readouterr().out


def test_a_run_is_shown_as_text_where_there_is_no_notebook(shell, run, capsys):
    from agent_nb import Agent, Scripted

    async def awaited():
        return await Agent(Scripted(["Hello there."]))("hi")

    run(awaited()).show()
    assert "Hello there." in capsys.readouterr().out
