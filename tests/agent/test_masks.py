"""Which differences of two results count in a test."""

import datetime
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.masking.clock import find_clocks
from agent_nb.agent.masking.durations import EXACT, Measures
from agent_nb.agent.masking.folders import Folders, digest_folder
from agent_nb.agent.masking.masks import Rule, Verdict, compare_results
from agent_nb.agent.masking.surroundings import Side, Span, is_zone, read_time_zone


def test_a_cell_that_compares_nothing_compiles_no_patterns_of_masks():
    code = "import sys, agent_nb.notebook.cell.run; print([n for n in sys.modules if n.endswith(('.masking.masks', '.masking.clock'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def at(*parts):
    return datetime.datetime(*parts, tzinfo=datetime.UTC).timestamp()


def interpreter(prefix, base, version):
    library = f"{base}/lib/python{version}"
    places = {
        "prefix": prefix,
        "base": base,
        "library": library,
        "program": f"{prefix}/bin/python{version}",
    }
    return {name: digest_folder(path) for name, path in places.items()}


BEGAN, AGAIN = at(2026, 11, 22, 21, 33, 45), at(2026, 12, 24, 6, 1, 2)
RECORDED = Side(
    span=Span(BEGAN, BEGAN + 2, "Europe/Berlin"),
    folders=Folders(
        work=digest_folder("/srv/a"),
        temporary=digest_folder("/tmp"),
        python=interpreter("/srv/a/.venv", "/usr", "3.11"),
    ),
)
NOW = Side(
    span=Span(AGAIN, AGAIN + 2, "", 19_800),
    folders=Folders(
        work=digest_folder("/data/b c"),
        temporary=digest_folder("/var/tmp"),
        python=interpreter("/opt/p", "/opt/p", "3.13"),
    ),
)
TRACE = 'Traceback (most recent call last):\n{}  File "<notebook cell>", line 2, in h\n    1/0\n{}ZeroDivisionError: {}'
IPYTHON = "ValueError      Traceback (most recent call last)\nCell In[{}], line 2\n      1 x\n----> 2 {}\n{}\nValueError: a"

SAME = {
    "a time in local time": ("now 2026-11-22T22:33:46.12", "now 2026-12-24T11:31:02.9"),
    "a time in UTC": ("2026-11-22 21:33:46Z", "2026-12-24 06:01:03+00:00"),
    "a time of day": ("at 21:33:47", "at 06:01:02"),
    "a time of day to the minute": ("at 10:33 PM", "at 11:31 AM"),
    "the day": ("on 2026-11-22.", "on 2026-12-24."),
    "the day as Germans write it": ("am 22.11.2026", "am 24.12.2026"),
    "the time as Germans write it": ("22.11.2026 22:33:46", "24.12.2026 11:31:03"),
    "the day in one number": ("r_20261122.csv", "r_20261224.csv"),
    "the day as a number": ({"day": 20261122}, {"day": 20261224}),
    "the day with slashes": ("11/22/2026", "12/24/2026"),
    "the day as C writes it": ("11/22/26", "12/24/26"),
    "the day with slashes, the year first": ("2026/11/22 22:33:46", "2026/12/24 11:31:03"),
    "the day of the week": ("Sunday, 22 November 2026", "Thursday, 24 December 2026"),
    "the day, the month in letters": ("22-Nov-2026 22:33:46", "24-Dec-2026 11:31:02"),
    "the name of a zone": ("2026-11-22 22:33:46 CET", "2026-12-24 11:31:02 IST"),
    "midnight of the day": ("2026-11-22 00:00:00", "2026-12-24 00:00:00"),
    "a time of day on the day": ("2026-11-22T18:15:00", "2026-12-24T18:15:00"),
    "a file that ls lists": (
        "-rw-r--r-- 1 ann ann 12 Nov 22 22:33 a.csv",
        "-rw-r--r-- 1 ann ann 12 Dec 24 11:31 a.csv",
    ),
    "a file that has become old": ("12 Nov 22 21:02 a.csv", "12 Nov 22  2026 a.csv"),
    "a time as a tuple": (
        "time.struct_time(tm_year=2026, tm_mon=11, tm_mday=22, tm_hour=22, tm_min=33, tm_sec=46, tm_wday=6, tm_yday=326, tm_isdst=0)",
        "time.struct_time(tm_year=2026, tm_mon=12, tm_mday=24, tm_hour=11, tm_min=31, tm_sec=2, tm_wday=3, tm_yday=358, tm_isdst=0)",
    ),
    "a key of the day": ({"2026-11-22": 3, "n": 1}, {"2026-12-24": 3, "n": 1}),
    "data of the day of recording": (
        "2026-11-22 oak 61\nat 22:33:46",
        "2026-11-22 oak 61\nat 11:31:02",
    ),
    "data of the day of the replay": (
        "2026-12-24 oak 61\nat 22:33:46",
        "2026-12-24 oak 61\nat 11:31:02",
    ),
    "a path of the recording's folder in the data": (
        "/srv/a/x.csv at 22:33:46",
        "/srv/a/x.csv at 11:31:02",
    ),
    "a program below a short prefix": ("/usr/bin/env in /srv/a", "/usr/bin/env in /data/b c"),
    "the day in words": ("22 November 2026", "24 December 2026"),
    "a time as C writes it": ("Sun Nov 22 21:33:46 2026", "Thu Dec 24 06:01:02 2026"),
    "a datetime's repr": (
        "datetime.datetime(2026, 11, 22, 22, 33, 45, 12)",
        "datetime.datetime(2026, 12, 24, 11, 31, 3)",
    ),
    "a date's repr": ("datetime.date(2026, 11, 22)", "datetime.date(2026, 12, 24)"),
    "a time in a file's name": ("r_20261122_213345.csv", "r_20261224_060102.csv"),
    "seconds since 1970": ({"at": BEGAN + 0.5, "x": 1}, {"x": 1.0, "at": AGAIN + 1}),
    "milliseconds since 1970": (int(BEGAN * 1000), int(AGAIN * 1000)),
    "an address in a repr": ("<A at 0x7f00>", "<A at 0x7e11>"),
    "an address in a repr in a repr": (
        "<bound method A.f of <m.A object at 0x7f00>>",
        "<bound method A.f of <m.A object at 0x11>>",
    ),
    "a thread": (
        "<Thread(Thread-5 (work), started 140123)>",
        "<Thread(Thread-7 (work), started 99)>",
    ),
    "a task": (
        "<Task pending name='Task-12' coro=<f()>>",
        "<Task pending name='Task-9' coro=<f()>>",
    ),
    "the working folder": ("read /srv/a/d.csv", "read /data/b c/d.csv"),
    "paths as keys in another order": (
        {"/srv/a/x": 1, "/srv/a/y": 2},
        {"/data/b c/y": 2, "/data/b c/x": 1},
    ),
    "the temporary folder": ("wrote /tmp/tmpab12cd34/q", "wrote /var/tmp/tmp98_fedcb/q"),
    "a temporary folder with a name": (
        "/tmp/run-ab12cd34/x.csv",
        "/var/tmp/run-98_fedcb/x.csv",
    ),
    "a temporary file with an ending": ("/tmp/tmpab12cd34.csv", "/var/tmp/tmp98_fedcb.csv"),
    "what mktemp makes": ("/tmp/tmp.aB12cd34Ef", "/var/tmp/tmp.zZ98fedcbA"),
    "the prefix": ("in /srv/a/.venv", "in /opt/p"),
    "the library": ("/usr/lib/python3.11/json/x.py", "/opt/p/lib/python3.13/json/x.py"),
    "the program": ("/srv/a/.venv/bin/python3.11 -m x", "/opt/p/bin/python3.13 -m x"),
    "site-packages": (
        "/srv/a/.venv/lib/python3.11/site-packages/np/x.py",
        "/opt/p/lib/python3.13/site-packages/np/x.py",
    ),
    "site-packages of another environment": (
        "/base/lib/python3.11/site-packages/np/x.py",
        "/usr/lib/python3/dist-packages/np/x.py",
    ),
    "a module of the library": (
        "<module 'json' from '/usr/lib/python3.11/json/__init__.py'>",
        "<module 'json' from '/opt/p/lib/python3.13/json/__init__.py'>",
    ),
    "a module that is built in elsewhere": (
        "<module 'math' (built-in)>",
        "<module 'math' from '/opt/p/lib/python3.13/lib-dynload/math.cpython-313-x86_64-linux-gnu.so'>",
    ),
    "a module of the project": (
        "<module 'h' from '/srv/a/h.py'>",
        "<module 'h' from '/data/b c/h.py'>",
    ),
    "the line of a warning in a package": (
        "/v/site-packages/np/x.py:12: UserWarning: old",
        "/w/site-packages/np/x.py:19: UserWarning: old",
    ),
    "a suggestion": (
        "NameError: name 'bass' is not defined",
        "NameError: name 'bass' is not defined. Did you mean: 'base'?",
    ),
    "a suggestion to import": (
        "NameError: name 'sys' is not defined",
        "NameError: name 'sys' is not defined. Did you forget to import 'sys'?",
    ),
    "a suggested argument": (
        "TypeError: f() got an unexpected keyword argument 'nam'",
        "TypeError: f() got an unexpected keyword argument 'nam'. Did you mean 'name'?",
    ),
    "a set": ("{'b', 'a'}", "{'a', 'b'}"),
    "a set of numbers": ("in {2, 10, 1}", "in {10, 1, 2}"),
    "tqdm's end": ("100% 3/3 [00:00<00:00, 123.4it/s]", "100% 3/3 [00:09<00:00, 1.2s/it]"),
    "frames of libraries": (
        TRACE.format('  File "/usr/x.py", line 3, in f\n    g()\n', "    ~^~\n", "a"),
        TRACE.format("", "", "a"),
    ),
    "cell numbers": (
        IPYTHON.format(3, "1/0", "\nFile ~/x.py:3, in f(x)\n      3 a"),
        IPYTHON.format(15, "1/0", ""),
    ),
    "an integral float": ([1.0, {"a": 2}], [1, {"a": 2.0}]),
    "the size of a picture": ("(image/png, 12,345 bytes)", "(image/png, 12,399 bytes)"),
    "white space at line ends": ("a \nb\n", "a\nb"),
}
MEASURED = {
    "%time": (
        "CPU times: user 1 s\nWall time: 3 s",
        "CPU times: user 1 ms, sys: 2 us, total: 1 ms\nWall time: 3 min",
    ),
    "%timeit": (
        "12.3 ns ± 0.5 ns per loop (mean ± std. dev. of 7 runs, 100,000 loops each)",
        "1.3 ms ± 9 µs per loop (mean ± std. dev. of 7 runs, 1,000 loops each)",
    ),
    "%timeit when one run was slow": (
        "The slowest run took 6.67 times longer than the fastest.\n1 ms ± 9 µs per loop (mean ± std. dev. of 7 runs)",
        "2 ms ± 8 µs per loop (mean ± std. dev. of 7 runs)",
    ),
    "%time of code that compiles slowly": (
        "5\nWall time: 3 s",
        "5\nWall time: 4 s\nCompiler : 1min 3s\nParser   : 200 ms",
    ),
    "a duration of the same size": ("took 12 ms", "took 50 ms"),
    "a duration in another unit": ("took 900 µs", "took 2.2 ms"),
    "a rate of the same size": ("3.5 rows/s", "9.1 rows/s"),
    "a timedelta": ("0:00:00.0012", "0:00:00.0099"),
    "a duration below a second": ("0.00 s", "0.92 s"),
    "a duration of minutes": ("took 1min 3s", "took 4min 40s"),
}
PRINTED = {
    "pytest": ("=== 3 passed, 1 skipped in 0.42s ===", "=== 3 passed, 1 skipped in 3.90s ==="),
    "pytest, quietly": ("3 passed in 0.42s", "3 passed in 1.20s"),
    "unittest": ("Ran 3 tests in 0.001s", "Ran 3 tests in 0.310s"),
    "time of a shell": ("real\t0m0.005s\nuser\t0m0.001s", "real\t0m0.815s\nuser\t0m0.101s"),
    "joblib": ("| elapsed:    0.3s remaining: 0.1s", "| elapsed:    1.9s remaining: 0.0s"),
    "scikit-learn": ("[CV] END C=1; total time=   0.0s", "[CV] END C=1; total time=   0.9s"),
    "Keras": ("32/32 ━━ 0s 1ms/step - loss: 0.5", "32/32 ━━ 1s 30ms/step - loss: 0.5"),
    "a bar": ("3 of 3, 120.5it/s", "3 of 3, 40.1it/s"),
}
IN_A_SHELL = {
    "a build": ("built in 0.42s", "built in 2.10s"),
    "ping": ("ttl=64 time=0.045 ms", "ttl=64 time=0.245 ms"),
    "a download": ("12.1 MB/s", "40.5 MB/s"),
}
DIFFERENT = {
    "a name with fewer characters than tempfile makes": ("/tmp/job-17365", "/var/tmp/job-20418"),
    "a line that only looks like one of %time": ("Parser   : 5 errors", "Parser   : 9 errors"),
    "a line more of the user's": ("done", "done\nCompiler : 3 passes"),
    "a slowest run of the user's": ("The slowest run took part.", "The slowest run took none."),
    "a date of the data": ("2024-05-01", "2025-05-01"),
    "a date of the data beside the day of the run": ("2024-11-22", "2026-12-24"),
    "a time that was not the run's": ("at 12:30:00", "at 06:01:02"),
    "a time that moved by a day": ("on 2026-11-22", "on 2026-12-23"),
    "one time more": ("at 22:33:46", "at 11:31:02 11:31:02"),
    "one time less": ("at 22:33:46 22:33:46", "at 11:31:02"),
    "a time near the recording in both": ("at 22:33:46", "at 22:33:47"),
    "a time near the replay in both": ("at 11:31:01", "at 11:31:02"),
    "the day in another form": ("2026-11-22", "24.12.2026"),
    "seconds since 1970 in another unit": (int(BEGAN), int(AGAIN * 1000)),
    "minutes and no seconds": ("at 22:33:46", "at 11:31"),
    "a day that does not exist": ("r_20269999", "r_20268888"),
    "a day in a year that does not exist": ("22 Nov 0000", "24 Dec 0000"),
    "a date of the data as Germans write it": ("22.11.2024", "24.12.2024"),
    "a date of the data in one number": (20240501, 20240601),
    "a version": ("1.2.3", "1.2.4"),
    "an old file with another time": ("Nov 22 10:15 a.csv", "Nov 21  2026 a.csv"),
    "a time of day, and a day": ("at 10:15", "at 01.05.2026"),
    "another key": ({"2026-11-22": 3}, {"2026-12-23": 3}),
    "one key more": ({"a": 1}, {"a": 1, "2026-12-24": 1}),
    "hours of work": ("worked 7.5 hours", "worked 70.5 hours"),
    "a percentile": ("p95 = 120 ms", "p95 = 480 ms"),
    "a rate of the data": ("900 rows/s", "100 rows/s"),
    "a wall time of the data": ("Wall time: 3 h", "Wall time: 5 h"),
    "a time in a sentence": ("won in 9.58s by Bolt", "won in 9.69s by Bolt"),
    "a duration of the same size": ("took 12 ms", "took 50 ms"),
    "tests that ran": ("3 passed in 0.42s", "4 passed in 0.42s"),
    "a name of a temporary file": ("/tmp/results1", "/var/tmp/results2"),
    "the prefix instead of the library": ("/srv/a/.venv/x", "/opt/p/lib/python3.13/x"),
    "the working folder instead of the temporary one": ("/srv/a/x", "/var/tmp/x"),
    "another module": (
        "<module 'json' from '/usr/lib/python3.11/json/__init__.py'>",
        "<module 'csv' from '/opt/p/lib/python3.13/csv.py'>",
    ),
    "a module of the data": ("<module 'h' from '/x/h.py'>", "<module 'h' from '/y/h.py'>"),
    "another package": ("/v/site-packages/np/x.py", "/v/site-packages/pd/x.py"),
    "a name that is suggested in a text": ("Did you mean: 'a'?", "Did you mean: 'b'?"),
    "a name that an error names": (
        "NameError: 'a'. Did you mean: 'c'?",
        "NameError: 'b'. Did you mean: 'c'?",
    ),
    "a text and a number": ("42", 42),
    "a duration that is another": ("12 ms", "999 ms"),
    "a rate that is another": ("3 it/s", "300 it/s"),
    "a time of the data": ("10:15:00.5", "11:15:00.5"),
    "whole seconds": ("wait 5 s", "wait 6 s"),
    "a hexadecimal number": ("0x1F", "0xDEAD"),
    "a folder of the data": ("/data/2024/x.csv", "/data/2025/x.csv"),
    "a folder that is as long": ("/srv/b/x.csv", "/data/b c/x.csv"),
    "sets with other items": ("{'b', 'c'}", "{'a', 'b'}"),
    "a dictionary": ("{'a': 1}", "{'a': 2}"),
    "an order that means something": ("['a', 'b']", "['b', 'a']"),
    "the last line of a traceback": (TRACE.format("", "", "a"), TRACE.format("", "", "b")),
    "the cell's own line": (IPYTHON.format(3, "1/0", ""), IPYTHON.format(3, "2/0", "")),
    "a number": ("42", "43"),
    "an integer that only looks like a time": (1_700_000_000, 1_700_000_001),
    "a value in JSON": ({"a": [1, "x"]}, {"a": [1, "y"]}),
    "the kind of a picture": ("(image/png, 12 bytes)", "(image/jpeg, 12 bytes)"),
    "true and one": ([True], [1]),
    "a text that is empty now": ("done", ""),
    "a text that was empty": (" ", "done"),
}


@pytest.mark.parametrize("what", SAME)
def test_it_is_the_same(what):
    assert compare_results(*SAME[what], RECORDED, NOW).same


@pytest.mark.parametrize("what", DIFFERENT)
def test_it_is_different(what):
    assert not compare_results(*DIFFERENT[what], RECORDED, NOW).same


@pytest.mark.few(19)
@pytest.mark.parametrize("what", DIFFERENT)
def test_each_value_of_a_difference_is_the_same_as_itself(what):
    for value in DIFFERENT[what]:
        assert compare_results(value, value, RECORDED, NOW) == Verdict(True)


@pytest.mark.parametrize("what", MEASURED)
def test_where_a_clock_is_read_it_is_the_same(what):
    verdict = compare_results(*MEASURED[what], RECORDED, NOW, measures=Measures(clock=True))
    assert verdict.same
    assert {rule for rule, *_ in verdict.masked} <= {"time", "duration"}
    assert verdict.masked
    assert not compare_results(*MEASURED[what], RECORDED, NOW).same


@pytest.mark.parametrize("pair", [("12 ms", "12 s"), ("3 it/s", "300 it/s"), ("5 s", "6 s")])
def test_where_a_clock_is_read_other_durations_are_different(pair):
    assert not compare_results(*pair, RECORDED, NOW, measures=Measures(clock=True)).same


@pytest.mark.parametrize("what", PRINTED)
def test_a_line_that_a_library_prints_is_the_same(what):
    assert compare_results(*PRINTED[what], RECORDED, NOW).same
    assert not compare_results(*PRINTED[what], RECORDED, NOW, measures=EXACT).same


@pytest.mark.parametrize("what", IN_A_SHELL)
def test_a_line_that_a_shell_prints_is_the_same(what):
    assert compare_results(*IN_A_SHELL[what], RECORDED, NOW, measures=Measures(commands=True)).same
    assert not compare_results(*IN_A_SHELL[what], RECORDED, NOW).same


@pytest.mark.parametrize("case", SAME)
def test_each_difference_that_does_not_count_is_listed_once(case):
    old, new = SAME[case]
    listed = compare_results(old, new, RECORDED, NOW).masked
    equal = old == new or not isinstance(old, str)
    assert equal or listed
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(
    ("old", "new", "listed"),
    [
        ("\x1b[31mred\x1b[0m", "red", [("colour", "\x1b[31m", ""), ("colour", "\x1b[0m", "")]),
        ("a  \nb", "a\nb", [("blanks", "  ", "")]),
        ("a\n", "a", [("blanks", "\n", "")]),
        ("", "\n", [("blanks", "", "\n")]),
        ("1 %\r2 %\nend", "2 %\nend", [("overwritten text", "1 %\r2 %", "")]),
        ("{'a', 'b'}", "{'b', 'a'}", [("order of a set", "", "{'b', 'a'}")]),
        (
            TRACE.format('  File "/x/lib.py", line 3, in f\n    g()\n', "", "a"),
            TRACE.format("", "", "a"),
            [("traceback", 'File "/x/lib.py", line 3, in f\n    g()\n', "")],
        ),
        (["at 21:33:46"] * 2, ["at 06:01:03"] * 2, [("clock", "21:33:46", "06:01:03")]),
    ],
)
def test_what_changed_the_comparison_is_listed(old, new, listed):
    assert compare_results(old, new, RECORDED, NOW) == Verdict(True, tuple(listed))


def test_a_long_masked_text_is_listed_from_where_it_differs():
    old, new = (f"{'x' * 5000}{end}{'y' * 5000}" for end in "ab")
    rule = Rule("x+.y+")
    ((_, one, other),) = compare_results(old, new, RECORDED, NOW, rules=[rule]).masked
    assert (one[:25], other[:25]) == (f"…{'x' * 20}ayyy", f"…{'x' * 20}byyy")
    assert max(len(one), len(other)) <= 202


def test_what_was_masked_is_listed_in_pairs():
    verdict = compare_results("a 21:33:46 <A at 0x1>", "a 06:01:03 <A at 0x1>", RECORDED, NOW)
    assert verdict.masked == (("clock", "21:33:46", "06:01:03"),)


def test_a_pattern_of_the_project_is_masked_and_listed():
    rules = [Rule(pattern=r"build (\d)[0-9a-f]+", replace=r"build \1")]
    verdict = compare_results("build 1abc", "build 1fff", RECORDED, NOW, rules=rules)
    assert verdict.same
    assert verdict.masked == ((f"pattern {rules[0].pattern!r}", "build 1abc", "build 1fff"),)
    assert not compare_results("build 1abc", "build 2abc", RECORDED, NOW, rules=rules).same


@pytest.mark.parametrize(
    "beginning", ["[00:01<", "[00:01, ", "[00:01, /s", "Thread(a, ", "Thread(a, 1 1"]
)
def test_many_beginnings_of_a_masked_text_take_linear_time(beginning):
    """In quadratic time they would exceed the test's time limit."""
    assert not compare_results(beginning * 20_000, "x", RECORDED, NOW).same


def test_a_recorded_folder_longer_than_any_path_takes_no_memory():
    text = "".join(f"/{n}" for n in range(5000))
    tracemalloc.start()
    try:
        assert not Folders(work=[len(text) // 2, "x"]).find_roles(text)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_folder_is_recorded_without_its_name():
    assert "secret" not in str(digest_folder("/home/x/secret project"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        st.lists,
        max_leaves=5,
    )
)
def test_whatever_it_is_it_is_the_same_as_itself(value):
    assert compare_results(value, value, RECORDED, NOW).same


@pytest.mark.parametrize(
    "span", [Span(1e18, 1e18), Span(float("nan"), 0.0), Span(0.0, 0.0, "", 10**9)]
)
def test_a_record_of_an_impossible_time_is_compared(span):
    now = Side(span=Span(1.7e9, 1.7e9))
    pair = "Jan 01 10:00 notes.txt", "Jan 01  2024 notes.txt"
    assert not compare_results(*pair, Side(span=span), now).same


# start of a run in UTC, its seconds, and a value in Berlin
TOUCHING = [
    ((2026, 11, 26, 0, 0, 2), 7, "23:59:59"),
    ((2026, 11, 26, 23, 59, 50), 8, "00:00:01"),
    ((2026, 11, 26, 0, 0, 2), 7, "Nov 25 23:59"),
    ((2026, 11, 26, 8), 200_000, "Nov 27 10:00"),
    ((2026, 11, 26, 8), 200_000, "10:00:00"),
    ((2026, 10, 25, 0, 30, 30), 1, "2026-10-25 02:30:30"),
    ((2026, 10, 25, 1, 30, 30), 1, "2026-10-25 02:30:30"),
    ((2026, 10, 25, 1, 30, 30), 1, "02:30"),
]
APART = [
    ((2026, 11, 26, 0, 0, 2), 7, "23:59:50"),
    ((2026, 11, 26, 23, 59, 50), 8, "00:00:05"),
    ((2026, 11, 26, 8), 200_000, "Nov 29 10:00"),
    ((2026, 11, 26, 8), 200_000, "Nov 26 07:00"),
    ((2026, 10, 25, 3, 30, 30), 1, "2026-10-25 02:30:30"),
    ((2026, 3, 29, 0, 30, 30), 1, "2026-03-29 02:30:30"),
]


@pytest.mark.parametrize(
    ("began", "seconds", "value", "touches"),
    [*((*c, True) for c in TOUCHING), *((*c, False) for c in APART)],
)
def test_a_value_is_the_time_of_a_run_only_if_it_touches_the_run(began, seconds, value, touches):
    span = Span(at(*began), at(*began) + seconds, "Europe/Berlin")
    assert span.holds(next(find_clocks(value))) is touches


@pytest.mark.parametrize(
    ("day", "touches"), [((2026, 3, 9), False), ((2026, 11, 2), True)], ids=["23 h", "25 h"]
)
def test_a_day_ends_at_midnight_where_clocks_change(day, touches):
    began = at(*day, 4, 30)
    span = Span(began, began, "America/New_York")
    assert span.holds(next(find_clocks(f"{day[0]}-{day[1]:02}-{day[2] - 1:02}"))) is touches


def test_an_impossible_offset_leaves_the_time_in_utc():
    side = Side.read({"offset": 10**9}, BEGAN, BEGAN + 2)
    assert side.span.holds(next(find_clocks("2026-11-22 21:33:46")))


@pytest.mark.parametrize("digits", [11, 5000])
def test_a_number_too_large_for_a_date_is_compared(digits):
    old, new = (f"datetime.date(2026, {digit * digits}, 1)" for digit in "89")
    assert not compare_results(old, new, RECORDED, NOW).same


@pytest.mark.parametrize(
    "text", ["3." + "1" * 200_000, "Thread(" + ", 1" * 60_000, "1.5 ms ± " * 20_000]
)
def test_a_long_text_is_compared_without_endless_search(text):
    measures = Measures(clock=True)
    assert not compare_results(text, f"{text}2", RECORDED, NOW, measures=measures).same


@pytest.mark.parametrize("elapsed", ["::", "1:2:3:4", "1.2.3:4"])
def test_a_time_that_no_shell_prints_is_compared(elapsed):
    old, new = (f"0.0{n}user 0.00system {elapsed}elapsed 9%CPU" for n in "12")
    measures = Measures(commands=True)
    assert not compare_results(old, new, RECORDED, NOW, measures=measures).same


@pytest.mark.parametrize("zone", ["JST-9", "UTC0", "Nowhere/Town", "../x"])
def test_an_unknown_time_zone_counts_as_none(zone, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    assert not is_zone(zone)
    assert read_time_zone()[0] == ""
    clock = "2023-11-14 22:13:20"
    now = "2027-01-15 08:00:00"
    before = Side(span=Span(1.7e9, 1.7e9, zone))
    assert compare_results(clock, now, before, Side(span=Span(1.8e9, 1.8e9))).same
