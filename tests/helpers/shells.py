"""IPython shells: in this process, with ways to run cells there, and on a pseudo-terminal."""

import asyncio
import builtins
import gc
import os
import re
import select
import signal
import sys
import time

import pytest
from helpers.marks import starts
from helpers.paths import python_path


@pytest.fixture(scope="session")
def ipython():
    """One in-process IPython shell, without history file and start-up files."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.HistoryManager.enabled = False
    main = sys.modules["__main__"]
    shell = InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()
    sys.modules["__main__"] = main
    return shell


@pytest.fixture
def shell(ipython, monkeypatch):
    """The shell with an empty namespace and as `__main__`; other tests run in no shell."""
    monkeypatch.setitem(sys.modules, "__main__", ipython.user_module)
    ipython.reset(new_session=False)
    for kind in type(ipython)._walk_mro():
        kind._instance = ipython
    yield ipython
    type(ipython).clear_instance()
    ipython.reset(new_session=False)
    gc.freeze()  # a reset collects garbage; what has survived it is not looked through again


@pytest.fixture
def loaded(shell):
    """The shell with our magics and none of their defaults changed."""
    from agent_nb.notebook import magic

    magic.load_magics(shell)
    yield shell
    magic.unload_magics(shell)
    shell.config.pop("AgentMagics", None)


@pytest.fixture
def run():
    """Run a coroutine as a cell does: on an asyncio loop of this thread, with a bound
    on its time.
    """

    def run(coroutine, seconds=30):
        async def bounded():
            return await asyncio.wait_for(coroutine, seconds)

        return asyncio.run(bounded())

    return run


@pytest.fixture
def agent(loaded, run):
    """Run one `%%agent` cell and return its Run."""

    def agent(line="-m model", body="hello", **names):
        loaded.user_ns.update(names)
        code = loaded.transform_cell(f"%%agent {line}\n{body}")
        result = run(loaded.run_cell_async(code, transformed_cell=code))
        if result.error_in_exec is not None:
            raise result.error_in_exec
        return loaded.user_ns["_agent"]

    return agent


@pytest.fixture
def answer(monkeypatch):
    """Have `input()` give these answers in turn; return the texts it was asked with."""

    def answer(*said):
        asked, left = [], list(said)

        def fake(text=""):
            asked.append(text)
            item = left.pop(0)
            if isinstance(item, BaseException):
                raise item
            return item

        monkeypatch.setattr(builtins, "input", fake)
        return asked

    return answer


class Terminal:
    """IPython on a pseudo-terminal."""

    def __init__(self, folder):
        pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover  (the child)
            env = {
                **os.environ,
                "PYTHONPATH": python_path(),
                "IPYTHONDIR": str(folder),
                "TERM": "dumb",
            }
            os.chdir(folder)
            arguments = [
                "-m",
                "IPython",
                "--simple-prompt",
                "--no-banner",
                "--colors=nocolor",
                "--HistoryManager.enabled=False",
            ]
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
@starts("kernel")
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    terminal.expect(r"In \[1\]: ", 60)
    terminal.cell("%load_ext agent_nb")
    terminal.cell("from agent_nb import Scripted")
    yield terminal
    terminal.close()


def press() -> None:
    """Press Ctrl-C in this process."""
    signal.raise_signal(signal.SIGINT)
