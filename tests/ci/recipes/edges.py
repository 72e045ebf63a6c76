"""Two notebooks of many short calls: results that may differ, and results that may not.

`ALIKE`: what a call prints differs with the day, the machine and the interpreter, and means the
same. `CHANGES`: what a call prints depends on the value of a variable; the second value must be
noticed.
"""

import re

from .making import BETWEEN, Recipe

ALIKE = {
    "now": "datetime.datetime.now()",
    "now in UTC": "datetime.datetime.now(datetime.timezone.utc).isoformat()",
    "now in words": "time.ctime()",
    "now as Germans write it": "print(time.strftime('%d.%m.%Y %H:%M'))",
    "now as Americans write it": "print(time.strftime('%m/%d/%Y %I:%M %p'))",
    "now as C writes it": "print(time.strftime('%x %X'))",
    "now as a tuple": "print(time.localtime())",
    "now in seconds": "print(time.time())",
    "now in milliseconds": "int(time.time() * 1000)",
    "now with its zone": "print(datetime.datetime.now().astimezone().strftime('%Y-%m-%d %H:%M:%S %Z'))",
    "now with its offset": "print(datetime.datetime.now().astimezone())",
    "now in a mail": "email.utils.formatdate()",
    "now in a log": "logging.Formatter('%(asctime)s %(message)s').format(logging.makeLogRecord({'msg': 'done'}))",
    "the day": "datetime.date.today()",
    "the day in one number": "int(time.strftime('%Y%m%d'))",
    "the day as Germans write it": "print(time.strftime('am %d.%m.%Y'))",
    "the day in words": "print(time.strftime('%A, %d %B %Y'))",
    "the day in a file's name": "print(time.strftime('report_%Y%m%d.csv'))",
    "the day as a key": "{str(datetime.date.today()): 3, 'n': 1}",
    "midnight": "print(datetime.datetime.combine(datetime.date.today(), datetime.time()))",
    "data of the day of recording": "print(pathlib.Path('days.csv').read_text())",
    "these data, and now": "print(pathlib.Path('days.csv').read_text(), time.strftime('%H:%M:%S'))",
    "a file of the day of recording": "print(subprocess.run(['ls', '-l', 'days.csv'], capture_output=True, text=True, env={'LC_ALL': 'C', **os.environ}).stdout)",
    "the working folder": "os.path.join(os.getcwd(), 'days.csv')",
    "a temporary folder with a name": "tempfile.mkdtemp(prefix='run-')",
    "a temporary file with an ending": "tempfile.mkstemp(suffix='.csv')[1]",
    "the interpreter": "print(sys.prefix, sys.executable)",
    "the library": "os.__file__",
    "the packages": "IPython.__file__",
    "a module of the library": "json",
    "a module that some have built in": "math",
    "a set": "print({'oak', 'pine', 'birch', 'elm', 'ash'})",
    "an address": "print(object())",
    "a thread": "threading.current_thread()",
    "a name to import": "try:\n    colorsys\nexcept NameError:\n    traceback.print_exc(file=sys.stdout)",
    "an argument with another name": "try:\n    clocking.timed(functio=print)\nexcept TypeError as error:\n    print('TypeError:', error)",
    "an error in the library": "json.loads('{')",
    "%time": "%time sum(range(10))",
    "a duration": "began = time.perf_counter()\ntime.sleep(0.02)\nprint(f'{time.perf_counter() - began:.2f} s')",
    "a duration that the project measures": "print(clocking.timed(lambda: 3))",
    "tests that ran": "unittest.TextTestRunner(stream=sys.stdout).run(unittest.FunctionTestCase(lambda: None))\nNone",
    "time of a shell": "print(subprocess.run(['bash', '-c', 'time true'], capture_output=True, text=True).stderr)",
}
CHANGES = {  # code that prints `v`; two values of `v`
    "hours of work": ("print(f'worked {v} hours')", "7.5", "70.5"),
    "a percentile": ("print(f'p95 = {v} ms')", "120", "480"),
    "a rate": ("print(f'{v} rows/s')", "900", "100"),
    "a unit": ("print(f'120 {v}')", "'ms'", "'s'"),
    "a wall time of the data": ("print(f'Wall time: {v} h')", "3", "5"),
    "a time in a sentence": ("print(f'won in {v}s by Bolt')", "9.58", "9.69"),
    "tests that passed": ("print(f'{v} passed in 0.42s')", "3", "4"),
    "tests that ran": ("print(f'Ran {v} tests in 0.001s')", "3", "4"),
    "hundreds of seconds": (
        "print(f'{time.perf_counter() - time.perf_counter() + v:.2f} s')",
        "1",
        "500",
    ),
    "a date": ("print(v)", "'2024-05-01'", "'2024-05-02'"),
    "a date as Germans write it": ("print(v)", "'01.05.2024'", "'02.05.2024'"),
    "a date in one number": ("v", "20240501", "20240502"),
    "a month": ("print(v)", "'1 May 2024'", "'1 June 2024'"),
    "a time of day": ("print(v)", "'10:15:00.5'", "'11:15:00.5'"),
    "a time to come": (
        "print(datetime.datetime.now() + datetime.timedelta(hours=v))",
        "0",
        "5",
    ),
    "a day to come": ("print(datetime.date.today() + datetime.timedelta(v))", "0", "2"),
    "the key of a day": (
        "{str(datetime.date.today() + datetime.timedelta(v)): 3}",
        "0",
        "2",
    ),
    "one time more": ("print(*[time.strftime('%H:%M:%S')] * v)", "1", "2"),
    "minutes and no seconds": ("print(time.strftime(v))", "'%H:%M:%S'", "'%H:%M'"),
    "the day in another form": ("print(time.strftime(v))", "'%d.%m.%Y'", "'%Y-%m-%d'"),
    "seconds in another unit": ("int(time.time() * v)", "1", "1000"),
    "a number beside the time": ("print(time.strftime('%H:%M'), v)", "42", "43"),
    "a number": ("v", "42", "43"),
    "the last digit": ("v", "0.1 + 0.2", "0.3"),
    "a text and a number": ("v", "'42'", "42"),
    "true and one": ("[v]", "True", "1"),
    "nothing": ("[v]", "None", "''"),
    "a key": ("{v: 1}", "'limit'", "'least'"),
    "the order of a list": ("v", "['a', 'b']", "['b', 'a']"),
    "the order of lines": ("print(*v, sep='\\n')", "['a', 'b']", "['b', 'a']"),
    "an item of a set": ("print(v)", "{'a', 'b'}", "{'a', 'c'}"),
    "white space in a line": ("print(v)", "'a b'", "'a  b'"),
    "a class": ("v()", "type('A', (), {})", "type('B', (), {})"),
    "the name of a thread": ("threading.Thread(name=v)", "'one'", "'two'"),
    "a module": ("__import__(v)", "'json'", "'csv'"),
    "a folder of the interpreter": ("getattr(sys, v)", "'prefix'", "'executable'"),
    "the folder above": ("os.path.dirname(os.getcwd() + v)", "'/x'", "''"),
    "the name of a temporary file": (
        "os.path.join(tempfile.gettempdir(), v)",
        "'results1'",
        "'results2'",
    ),
    "an error": ("raise ValueError(v)", "'too much'", "'too little'"),
    "the name in an error": ("exec(v)", "'colorsys'", "'colorsyn'"),
    "the size of a file": (
        "pathlib.Path('x.txt').write_text(v)\nprint(subprocess.run(['wc', '-c', 'x.txt'], capture_output=True, text=True).stdout)",
        "'one'",
        "'three'",
    ),
    "a constant of the project": ("print(clocking.rate() + v)", "0", "1"),
}
IMPORTS = """import datetime, email.utils, json, logging, math, os, pathlib, subprocess, sys, tempfile, threading, time, traceback, unittest
import IPython, clocking
if not os.path.exists("days.csv"):
    pathlib.Path("days.csv").write_text(f"{datetime.date.today()},61\\n{datetime.datetime.now()},24\\n")"""
CLOCKING = """
import time
from limits_of_clocking import RATE

def timed(function):
    began = time.perf_counter()
    value = function()
    return f"{value} after {time.perf_counter() - began:.2f} s"

def rate():
    return RATE
"""
FILES = {"clocking.py": CLOCKING, "limits_of_clocking.py": "RATE = 3\n"}


def _cells(codes: list[str], first: str) -> str:
    """Return a cell of imports, `first`, the scripts, and an agent cell for each code."""
    listed = ",\n".join(map(repr, codes))
    scripts = f"codes = [{listed}]\nfor n, code in enumerate(codes):\n    globals()[f'm{{n}}'] = Scripted([call('python', code=code), 'Done.'])"
    cells = [f"%%agent -m m{n} -t python --approve auto --new\nRow {n}." for n in range(len(codes))]
    return BETWEEN.join([IMPORTS, first, scripts, *cells])


def _values(which: int) -> str:
    lines = (f"v{n} = {values[which]}" for n, (_, *values) in enumerate(CHANGES.values()))
    return "\n".join(lines)


def _of_row(code: str, number: int) -> str:
    """Return the code of a row with its own variable."""
    return re.sub(r"\bv\b", f"v{number}", code)


BEFORE, AFTER = _values(0), _values(1)  # the third cell of `changing`
FIRST_ROW = 5  # the cell of the first row, in both
RECIPES = [
    Recipe(
        "alike",
        "forty differences that mean nothing",
        _cells(list(ALIKE.values()), "pass"),
        FILES,
        runs=len(ALIKE),
    ),
    Recipe(
        "changing",
        "forty values that mean something",
        _cells([_of_row(code, n) for n, (code, *_) in enumerate(CHANGES.values())], BEFORE),
        FILES,
        runs=len(CHANGES),
    ),
]
