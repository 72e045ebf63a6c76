"""Progress on stderr: one redrawn line in a terminal, else one line per agent cell."""

import io
import os

import pytest

from agent_nb.runner.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_elsewhere_each_agent_cell_is_one_line():
    out = io.StringIO()
    with Progress("n.ipynb", out) as progress:
        progress.show_cell(0, 3, "x = 1")
        progress.show_cell(1, 3, "\n%%agent -m local/smollm2\nhello")
    assert out.getvalue() == "2/3 n.ipynb: %%agent -m local/smollm2\n"


def test_in_a_terminal_one_line_is_drawn_again_and_removed_at_the_end():
    out = Terminal()
    with Progress("n.ipynb", out) as progress:
        progress.show_cell(1, 2, "%%agent\nhello")
        assert "[##########----------] 2/2 n.ipynb: %%agent 0 s" in out.getvalue()
    assert out.getvalue().endswith("\r\x1b[K")
    assert "\n" not in out.getvalue()


@pytest.mark.parametrize("letter", ["x", "中"])
def test_a_line_is_never_wider_than_the_terminal(monkeypatch, letter):
    monkeypatch.setenv("COLUMNS", "60")
    out = Terminal()
    with Progress("analysis.ipynb", out) as progress:
        progress.show_cell(1, 2, letter * 50)
        drawn = out.getvalue().rpartition("\x1b[K")[2]
    assert drawn.startswith("[##########----------] 2/2 analysis.ipynb: " + letter)
    assert drawn.endswith(f"{letter} 0 s")
    assert len(drawn) + (drawn.count(letter) if letter == "中" else 0) in {58, 59}


def test_a_terminal_that_tells_no_width_shows_the_cell(monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((0, 0)))
    out = Terminal()
    out.fileno = lambda: 1
    with Progress("n.ipynb", out) as progress:
        progress.show_cell(1, 2, "%%agent\nhello")
    assert "2/2 n.ipynb: %%agent 0 s" in out.getvalue()


def test_what_a_cell_says_cannot_steer_the_terminal():
    out = io.StringIO()
    Progress("n.ipynb", out).show_cell(0, 1, "%%agent \x1b[2J\x07 --new\nx")
    assert "\x1b" not in out.getvalue()


def test_a_reader_who_stops_early_does_not_end_the_execution():
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with Progress("n.ipynb", Closed()) as progress:
        progress.show_cell(0, 1, "%%agent\nhi")
