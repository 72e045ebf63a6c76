"""Maps in a kernel: interrupted, awaited by code, iterated."""

from __future__ import annotations

import json

import pytest

from agent_nb.record.record import RECORD_MIME

pytestmark = pytest.mark.kernel
SETUP = """
%load_ext agent_nb
import asyncio
from pathlib import Path
import pandas as pd
from agent_nb import Agent, RUNS
from agent_nb.models.parts import Text

class Slow:
    name, dialect, grammar, shots, context = "test/slow", "native", False, False, 0
    mark = ""
    def start(self): return self
    async def stream(self, request):
        text = request.messages[-1].text
        if text.endswith("late"):
            Path(self.mark).touch()
            await asyncio.sleep(100)
        yield (Text(text.rpartition(" ")[2].upper()),)
    async def aclose(self): pass

slow = Slow()
df = pd.DataFrame({"text": ["one", "two", "late", "later"]})
"""
STATES = "print(list(_map.frame['_status']), [r.answer for r in _map.results])"
STOPPED = "agent: stopped (kernel interrupt); what is queued behind this cell does not run"


@pytest.fixture(scope="module")
def ready(kernel):
    status, said, _ = kernel.run(SETUP + f"\nslow.mark = {str(kernel.mark)!r}")
    assert status == "ok", said
    return kernel


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "code",
    [
        "%%agent -m slow --map df --concurrency 1\nSay {{ text }}",
        "await Agent(slow).map(df, 'Call {{ text }}', concurrency=1)\nprint('went on')",
        "async for row in Agent(slow).map(df, 'Cry {{ text }}', concurrency=1): pass\nprint('on')",
    ],
    ids=["magic", "awaited", "iterated"],
)
def test_an_interrupt_stops_the_map_and_the_cell_and_keeps_the_rows_so_far(ready, code):
    request = ready.send(code, cell="c")
    ready.marked()
    ready.interrupt()
    status, said, shown = ready.finish(request)
    assert (status, said) == ("error", STOPPED)
    (page,) = (each["data"] for each in shown.values())
    if not code.startswith("async"):  # code that iterates shows rows, no card
        assert "2 of 4 rows answered  1 stopped  1 not asked" in page["text/plain"]
        assert page[RECORD_MIME]["status"] == "interrupted"
        assert ready.run("print(_agent.log is _map.log)")[1].strip() == "True"
    said = ready.run(STATES)[1].strip()
    assert said == "['ok', 'ok', 'interrupted', 'pending'] ['ONE', 'TWO', '', '']"


def test_a_map_that_is_iterated_is_left_in_map_and_can_be_stopped_there(ready):
    code = "async for row in Agent(slow).map(df, 'Yell {{ text }}', concurrency=1): break"
    assert ready.run(code)[0] == "ok"
    assert ready.run("await _map.aclose()")[0] == "ok"
    said = ready.run("print(_map.run.status, _map.results[0].answer)")[1]
    assert said.strip() == "interrupted ONE"
    ready.mark.unlink(missing_ok=True)  # of its third row, which may have been asked


def test_an_awaited_map_is_shown_recorded_and_left_in_map(ready):
    code = "frame = await Agent(slow).map(df.head(2), 'Sing {{ text }}')"
    status, said, shown = ready.run(code, cell="a")
    assert status == "ok", said
    (page,) = (each["data"] for each in shown.values())
    assert "2 of 2 rows answered" in page["text/plain"]
    assert page[RECORD_MIME]["cell"] == "a"
    code = "print(frame.equals(_map.frame), [r.answer for r in _map.runs], _map.log is _agent.log)"
    assert ready.run(code)[1].strip() == "True ['ONE', 'TWO'] True"


def test_rows_are_given_as_they_finish(ready):
    code = "print([(row.place, row.answer, row.values['text']) async for row in Agent(slow).map(df.head(2), 'Hum {{ text }}', concurrency=1)])"
    status, said, shown = ready.run(code, cell="i")
    assert (status, said.strip()) == ("ok", "[(0, 'ONE', 'one'), (1, 'TWO', 'two')]")
    (record,) = (each["data"] for each in shown.values())  # alone: code that iterates shows rows
    assert json.dumps(record[RECORD_MIME])
