"""Kernel processes, spoken to as a front end does; a test that uses one is marked `kernel`."""

import os
import sys
import time
from pathlib import Path

import pytest
from helpers.lacking import lacking
from helpers.marks import starts
from helpers.paths import python_path
from jupyter_client.manager import KernelManager

from agent_nb.notebook.cell.interrupts import DOUBLE_CLICK

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
        self.manager.start_kernel(
            env={**os.environ, "PYTHONPATH": python_path(), "IPYTHONDIR": str(folder)}, cwd=folder
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
        time.sleep(4 * DOUBLE_CLICK)

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
@starts("kernel")
def kernel(request, tmp_path_factory):
    """A kernel of this Python, and of each that AGENT_NB_TEST_KERNELS names; its absence is a
    failure in CI.
    """
    if request.param == "missing":
        lacking(MISSING)
    kernel = Kernel(request.param, tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.close()


@pytest.fixture(scope="session")
@starts("kernel")
def kernel_type():
    """The class of kernels, for tests that start and lose their own."""
    return Kernel
