"""Progress on stderr: one redrawn line in a terminal, else one line per agent cell."""

import io

from agent_nb.runner.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_elsewhere_each_agent_cell_is_one_line():
    out = io.StringIO()
    with Progress("n.ipynb", out) as progress:
        progress.cell(0, 3, "x = 1")
        progress.cell(1, 3, "\n%%agent -m local/smollm2\nhello")
    assert out.getvalue() == "2/3 n.ipynb: %%agent -m local/smollm2\n"


def test_in_a_terminal_one_line_is_drawn_again_and_removed_at_the_end():
    out = Terminal()
    with Progress("n.ipynb", out) as progress:
        progress.cell(1, 2, "%%agent\nhello")
        assert "[##########----------] 2/2 n.ipynb: %%agent 0 s" in out.getvalue()
    assert out.getvalue().endswith("\r\x1b[K")
    assert "\n" not in out.getvalue()


def test_what_a_cell_says_cannot_steer_the_terminal():
    out = io.StringIO()
    Progress("n.ipynb", out).cell(0, 1, "%%agent \x1b[2J\x07 --new\nx")
    assert "\x1b" not in out.getvalue()
