"""A real IPython shell in this process, real kernels beside it, and ways to run cells in them."""

import asyncio
import builtins
import os
import re
import select
import sys
import time
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

from agent_nb.notebook.cell.interrupts import DOUBLE


@pytest.fixture(scope="session")
def ipython():
    """One in-process IPython shell, without history file and start-up files."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    yield shell
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(ipython):
    """The shell with an empty namespace."""
    ipython.reset(new_session=False)
    yield ipython
    ipython.reset(new_session=False)


@pytest.fixture
def loaded(shell):
    """The shell with our magics and none of their defaults changed."""
    from agent_nb.notebook import magic

    magic.load(shell)
    yield shell
    magic.unload(shell)
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


ROOT = Path(__file__).parents[2]
OTHERS = [
    python for python in os.environ.get("AGENT_NB_TEST_KERNELS", "").split(os.pathsep) if python
]
MISSING = "no other kernel: AGENT_NB_TEST_KERNELS names no Python with ipykernel 6.31"


class Kernel:
    """A kernel process of one Python, spoken to as a front end does; every request carries a cell
    id.
    """

    def __init__(self, python, folder):
        self.mark = Path(folder) / "mark"
        for more in (2, 1, 0):  # another process can take the ports before the kernel binds them
            try:
                self._start(python, folder)
                return
            except RuntimeError:
                if not more:
                    raise

    def _start(self, python, folder):
        self.manager = KernelManager()
        self.manager.kernel_spec.argv[0] = python
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        self.manager.start_kernel(
            env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(folder)}, cwd=folder
        )
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def send(self, code, cell="", stdin=False):
        """Send a cell and return the id of the request."""
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": stdin,
            "stop_on_error": True,
        }
        message = self.client.session.msg(
            "execute_request", content, metadata={"cellId": cell} if cell else {}
        )
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def finish(self, request, seconds=60):
        """Wait for the end of a request; return (status, the text of all outputs, the mime bundles
        shown last).
        """
        text, shown = self.output(request, seconds)
        status = ""
        while not status:
            reply = self.client.get_shell_msg(timeout=seconds)
            status = (
                reply["content"]["status"]
                if reply["parent_header"].get("msg_id") == request
                else ""
            )
        return status, text, shown

    def output(self, request, seconds=60):
        """Wait until a request is done; return the text of all outputs and the mime bundles shown
        last.
        """
        text, shown = [], {}
        for _ in iter(lambda: None, 1):
            message = self.client.get_iopub_msg(timeout=seconds)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind == "stream":
                text.append(content["text"])
            elif kind == "error":
                text += content["traceback"]
            elif kind in ("display_data", "update_display_data"):
                shown[content["transient"].get("display_id", len(shown))] = content
        return "".join(text), shown

    def run(self, code, **options):
        """Run a cell to its end."""
        return self.finish(self.send(code, **options))

    def marked(self, seconds=20):
        """Wait until the kernel's code has called `mark()`."""
        until = time.monotonic() + seconds
        while not self.mark.exists():
            assert time.monotonic() < until, "the cell never came to its mark"
            time.sleep(0.005)
        self.mark.unlink()

    def interrupt(self):
        """Press the front end's stop button."""
        self.manager.interrupt_kernel()

    def between_presses(self):
        """Wait until a further press is one of its own, on a busy machine too."""
        time.sleep(4 * DOUBLE)

    def close(self):
        """End the kernel."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture(
    scope="module",
    params=[sys.executable, *(OTHERS or ["missing"])],
    ids=lambda p: Path(p).parent.parent.name or p,
)
def kernel(request, tmp_path_factory):
    """A kernel of this Python, and of each that AGENT_NB_TEST_KERNELS names; its absence is a
    failure in CI.
    """
    if request.param == "missing":
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(MISSING)
    kernel = Kernel(request.param, tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.close()


@pytest.fixture(scope="session")
def kernel_type():
    """The class of kernels, for tests that start and lose their own."""
    return Kernel


class Terminal:
    """IPython on a pseudo-terminal."""

    def __init__(self, folder):
        pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover  (the child)
            path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
            env = {**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(folder), "TERM": "dumb"}
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
def terminal(tmp_path):
    terminal = Terminal(tmp_path)
    terminal.expect(r"In \[1\]: ", 60)
    terminal.cell("%load_ext agent_nb")
    terminal.cell("from agent_nb import Scripted")
    yield terminal
    terminal.close()
