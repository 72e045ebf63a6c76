"""Which differences of two results count in a test."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.record.clock import Span
from agent_nb.record.masks import Rule, Side, compare, unnamed


def at(*parts):
    return datetime.datetime(*parts, tzinfo=datetime.UTC).timestamp()


BEGAN, AGAIN = at(2026, 11, 22, 21, 33, 45), at(2026, 12, 24, 6, 1, 2)
RECORDED = Side(
    span=Span(BEGAN, BEGAN + 2, "Europe/Berlin"), work=unnamed("/srv/a"), temporary=unnamed("/tmp")
)
NOW = Side(
    span=Span(AGAIN, AGAIN + 2, "", 19_800),
    work=unnamed("/data/b c"),
    temporary=unnamed("/var/tmp"),
)
TRACE = 'Traceback (most recent call last):\n{}  File "<notebook cell>", line 2, in h\n    1/0\n{}ZeroDivisionError: {}'
IPYTHON = "ValueError      Traceback (most recent call last)\nCell In[{}], line 2\n      1 x\n----> 2 {}\n{}\nValueError: a"

SAME = {
    "a time in local time": ("now 2026-11-22T22:33:46.12", "now 2026-12-24T11:31:02.9"),
    "a time in UTC": ("2026-11-22 21:33:46Z", "2026-12-24 06:01:03+00:00"),
    "a time of day": ("at 21:33:47", "at 06:01:02"),
    "a time of day to the minute": ("at 10:33 PM", "at 11:31 AM"),
    "the day": ("on 2026-11-22.", "on 2026-12-24."),
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
    "the temporary folder": ("wrote /tmp/tmpab12cd34/q", "wrote /var/tmp/tmp98_fedcb/q"),
    "a set": ("{'b', 'a'}", "{'a', 'b'}"),
    "a set of numbers": ("in {2, 10, 1}", "in {10, 1, 2}"),
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
    "tqdm's end": ("100% 3/3 [00:00<00:00, 123.4it/s]", "100% 3/3 [00:09<00:00, 1.2s/it]"),
    "a duration of the same size": ("took 12 ms", "took 50 ms"),
    "a duration in another unit": ("took 900 µs", "took 2.2 ms"),
    "a rate of the same size": ("3.5 rows/s", "9.1 rows/s"),
    "a timedelta": ("0:00:00.0012", "0:00:00.0099"),
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
DIFFERENT = {
    "a line that only looks like one of %time": ("Parser   : 5 errors", "Parser   : 9 errors"),
    "a line more of the user's": ("done", "done\nCompiler : 3 passes"),
    "a slowest run of the user's": ("The slowest run took part.", "The slowest run took none."),
    "a date of the data": ("2024-05-01", "2025-05-01"),
    "a date of the data beside the day of the run": ("2024-11-22", "2026-12-24"),
    "a time that was not the run's": ("at 12:30:00", "at 06:01:02"),
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
}


@pytest.mark.parametrize("what", SAME)
def test_it_is_the_same(what):
    assert compare(*SAME[what], RECORDED, NOW).same


@pytest.mark.parametrize("what", DIFFERENT)
def test_it_is_different(what):
    assert not compare(*DIFFERENT[what], RECORDED, NOW).same


def test_what_was_masked_is_listed_in_pairs():
    verdict = compare("a 21:33:46 <A at 0x1>", "a 06:01:03 <A at 0x1>", RECORDED, NOW)
    assert verdict.masked == (("clock", "21:33:46", "06:01:03"),)


def test_a_pattern_of_the_project_is_masked_and_listed():
    rules = [Rule(pattern=r"build (\d)[0-9a-f]+", replace=r"build \1")]
    verdict = compare("build 1abc", "build 1fff", RECORDED, NOW, rules)
    assert verdict.same
    assert verdict.masked == ((f"pattern {rules[0].pattern!r}", "build 1abc", "build 1fff"),)
    assert not compare("build 1abc", "build 2abc", RECORDED, NOW, rules).same


def test_a_folder_is_recorded_without_its_name():
    assert "secret" not in str(unnamed("/home/x/secret project"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        st.lists,
        max_leaves=5,
    )
)
def test_whatever_it_is_it_is_the_same_as_itself(value):
    assert compare(value, value, RECORDED, RECORDED).same
