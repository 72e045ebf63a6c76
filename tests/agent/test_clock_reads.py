"""Which code reads a clock or runs a shell."""

import sys
import textwrap

import pytest

from agent_nb.agent.masking.clock_reads import read_code_measures, read_function_measures
from agent_nb.agent.masking.durations import Measures

BEFORE = """
import asyncio, datetime, os, resource, subprocess, time, timeit
import time as t
from datetime import datetime as moment
from time import perf_counter as clock, sleep
from timeit import default_timer
from clocked_of_tests import Watch, quick, timed, untimed

now = moment.now
watch = Watch()
data = {"time": 3, "now": 4}

def inner():
    return t.monotonic()

def outer():
    return inner()

def waits():
    sleep(0)

class Own:
    def stop(self):
        return clock()

own = Own()
"""
MODULE = """
import functools, time

def timed():
    return _now()

def _now():
    return time.perf_counter()

def untimed():
    return 1

def measured(function):
    @functools.wraps(function)
    def inner():
        began = time.time()
        return function(), time.time() - began
    return inner

@measured
def quick():
    return 1

class Watch:
    def stop(self):
        return time.monotonic()
"""
CLOCKED = """
time.time()
t.time()
clock()
default_timer()
time.perf_counter_ns()
from time import time; time()
from time import time as x; x()
import time as u; u.process_time()
datetime.datetime.now()
datetime.date.today()
moment.utcnow()
now()
timeit.timeit("1")
pd.Timestamp("now")
np.datetime64("today")
asyncio.get_running_loop().time()
os.times()
resource.getrusage(0)
%time x = 1
x = %timeit -o 1
%%time
outer()
timed()
quick()
watch.stop()
own.stop()
""".strip().splitlines()
NOT = """
1 + 1
time.sleep(0)
data["time"]
print("now", 3)
print("time.time()")
x.time
df.index.time
waits()
untimed()
moment(2024, 5, 1)
datetime.timedelta(1)
# time.time()
""".strip().splitlines()
COMMANDS = ["!ls", "x = !ls", "%%bash", "%sx ls", "subprocess.run(['ls'])", "os.system('ls')"]


@pytest.fixture(autouse=True)
def notebook(tmp_path, monkeypatch):
    (tmp_path / "clocked_of_tests.py").write_text(MODULE)
    (tmp_path / "main_of_tests.py").write_text(BEFORE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    main = __import__("main_of_tests")
    monkeypatch.setitem(sys.modules, "__main__", main)
    yield main
    for name in ("main_of_tests", "clocked_of_tests"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("code", CLOCKED)
def test_it_reads_a_clock(code, tmp_path):
    assert read_code_measures(code, tmp_path).clock


@pytest.mark.parametrize("code", NOT)
def test_it_reads_no_clock(code, tmp_path):
    assert read_code_measures(code, tmp_path) == Measures()


@pytest.mark.parametrize("code", COMMANDS)
def test_it_runs_a_shell(code, tmp_path):
    assert read_code_measures(code, tmp_path) == Measures(commands=True)


def test_code_among_lines_of_ipython_is_read(tmp_path):
    code = textwrap.dedent("""
        !ls
        for i in range(3):
            %matplotlib inline
            print(time.time())
    """)
    assert read_code_measures(code, tmp_path) == Measures(clock=True, commands=True)


@pytest.mark.parametrize(("name", "clock"), [("outer", True), ("timed", True), ("waits", False)])
def test_a_function_is_followed(notebook, name, clock, tmp_path):
    assert read_function_measures(getattr(notebook, name), tmp_path).clock == clock


def test_nothing_outside_the_project_is_followed(notebook, tmp_path):
    assert not read_function_measures(notebook.timed, tmp_path / "elsewhere").clock
