"""What an MCP server wrote to stderr holds no key, however the server wrote it."""

import time

import pytest

from agent_nb.tools.mcp.stderr_tail import LONGEST_TAIL, StderrTail
from agent_nb.wire import Redaction

KEY = "quite-secret-value"


@pytest.mark.parametrize("begin", ["", "x" * 4 * LONGEST_TAIL])
@pytest.mark.parametrize("between", ["", "\x1b[31m"])
def test_a_key_in_two_writes_or_with_colours_inside_is_hidden(begin, between):
    tail = StderrTail(Redaction({"MY_KEY": KEY}))
    tail.pipe.write(f"{begin} the key: {KEY[:7]}")
    tail.pipe.flush()
    tail.pipe.write(f"{between}{KEY[7:]}, says é")
    tail.close_write_end()
    assert tail.text(10).endswith("the key: [redacted MY_KEY], says é")


def tail_of(*writes):
    tail = StderrTail(Redaction({}))
    for written in writes:
        tail.pipe.write(written)
        tail.pipe.flush()
    tail.close_write_end()
    return tail.text(10)


def test_the_text_does_not_begin_inside_a_string_for_the_terminal():
    picture = "y" * 9 * LONGEST_TAIL
    assert tail_of(f"x\x1b]1337;{picture}", picture, "\x07the end") == "xthe end"
    assert tail_of(f"x\x1b]1337;{picture}\x1b[m\n", "the end").endswith("the end")


@pytest.mark.parametrize("marks", ["\u0301", "\u200d\ufe0f", "\u0301" * 2 * LONGEST_TAIL])
def test_the_text_does_not_begin_with_a_mark_without_its_letter(marks):
    rest = "z" * (LONGEST_TAIL - 1)
    assert tail_of(f"xxe{marks}{rest}") == f"…{rest}"


def test_what_was_written_is_waited_for_where_its_reader_is_late(monkeypatch):
    read = StderrTail._read

    def read_late(tail):
        time.sleep(0.4)
        read(tail)

    monkeypatch.setattr(StderrTail, "_read", read_late)
    tail = StderrTail(Redaction({}))
    tail.pipe.write("dying of boredom")
    tail.close_write_end()
    assert tail.text(0.05) == "dying of boredom"
