"""Terminal IPython on a pseudo-terminal: a cell runs, Ctrl-C ends it, a question is answered on the keyboard."""

import os
import re
import select
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.kernel
pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")

ROOT = Path(__file__).parents[2]
BOUND = 2.0  # s, generous; the test prints what it took (wanted: 0.3 s)


class Terminal:
    """IPython on a pseudo-terminal."""

    def __init__(self, folder):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover  (the child)
            path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
            env = {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(folder), "TERM": "dumb"}
            os.chdir(folder)
            arguments = ["-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor", "--HistoryManager.enabled=False"]
            os.execve(sys.executable, [sys.executable, *arguments], env)

    def expect(self, pattern, seconds=30):
        """Read until `pattern` appears; return what was read up to its end."""
        until = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            left = until - time.monotonic()
            assert left > 0, f"{pattern!r} did not appear in {self.seen!r}"
            if select.select([self.fd], [], [], left)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace").replace("\r\n", "\n")
        read, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return read

    def type(self, text):
        """Type a text."""
        os.write(self.fd, text.encode())

    def cell(self, *lines):
        """Type a cell and wait for the next prompt; return what it printed."""
        for line in lines:
            self.type(line + "\n")
            if len(lines) > 1 and line is not lines[-1]:
                self.expect(r"\.\.\.: ")
        return self.expect(r"\nIn \[\d+\]: ")

    def close(self):
        """End the process."""
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    terminal.expect(r"In \[1\]: ", 60)
    terminal.cell("%load_ext agent_nb")
    terminal.cell("from agent_nb import Scripted")
    yield terminal
    terminal.close()


def test_a_run_is_printed_and_left_in_the_namespace(terminal):
    terminal.cell("model = Scripted(['Hello from the script.'])")
    assert "Hello from the script." in terminal.cell("%%agent -m model", "hi", "", "")
    assert "'ok'" in terminal.cell("_agent.status")


def test_ctrl_c_ends_the_run_and_the_next_cell_works(terminal):
    terminal.cell("model = Scripted([{'chunks': ['I am ', 'waiting'], 'delay': 0.01}, ])")
    terminal.cell("slow = Scripted([{'text': 'x', 'delay': 60}])")
    terminal.cell("%%agent -m model", "warm up", "", "")
    for line in ("%%agent -m slow", "hi", "", ""):
        terminal.type(line + "\n")
    time.sleep(1)  # a person who loses patience
    start = time.monotonic()
    terminal.type("\x03")
    terminal.expect(r"\nIn \[\d+\]: ")
    took = time.monotonic() - start
    print(f"the prompt was back {1000 * took:.0f} ms after Ctrl-C")
    assert took < BOUND
    assert "['interrupt', 'end']" in terminal.cell("[e.type for e in _agent.events][-2:]")
    assert "42" in terminal.cell("6 * 7")


def test_a_question_is_answered_on_the_keyboard(terminal):
    call = '<execute>[{"name": "python", "args": {"code": "answered = 6 * 7"}}]</execute>'
    terminal.cell(f"model = Scripted([{call!r}, 'done'])")
    terminal.type("%%agent -m model -t python\n")
    terminal.expect(r"\.\.\.: ")
    terminal.type("hi\n\n\n")
    assert "answered = 6 * 7" in terminal.expect(r"Allow it\?.*: ")
    terminal.cell("y")
    assert "42" in terminal.cell("answered")
