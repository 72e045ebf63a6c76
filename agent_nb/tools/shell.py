"""Built-in tool `shell`: run a command in the notebook's folder.

Why: a model needs programs such as git or a test runner, but not the user's keys: the command gets
no environment variable that looks like a key or password. A stop or a timeout (by
`context.on_cancel`) and the end of the shell kill the process group.
"""

from __future__ import annotations

import codecs
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from ..errors import Cancelled
from ..host import DIVERTED
from ..wire import environment_secrets, redact_text
from .base import Outcome, ToolContext
from .decorator import as_tool, tool
from .values import Collector

_MOST_PROGRESS = 1_000_000  # characters of output that are shown while the command runs
_CHUNK = 65_536  # bytes read at once
_POLL = 0.05  # seconds between polls of a silent process
_QUEUED = 16  # chunks that wait in the queue
# once the shell has ended, reading ends after so many polls without output or so many chunks: the
# queue, the chunk that waits to enter it, and a full pipe
_SILENT_POLLS = 4
_LAST_CHUNKS = _QUEUED + 2
_HAS_WAITID = hasattr(os, "waitid")  # shows the end of a process before its id is freed


@tool(effect="outside", icon="terminal")
def shell(command: str, context: ToolContext) -> Outcome:
    """Run a shell command in the notebook's folder and return its output. Background processes end
    with the command.

    Args:
        command: The command line.
    """
    process = subprocess.Popen(  # noqa: S602  (this is the tool)
        command,
        shell=True,
        cwd=context.folder,
        env=drop_secrets(DIVERTED.original_environment()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    context.on_cancel(lambda: _kill(process))
    output = Collector()
    shown = 0
    try:
        for text in _read_output(process):
            output.add(text)
            if shown < _MOST_PROGRESS:
                shown += len(text)
                with suppress(Cancelled):  # the process is being killed; its output is kept
                    context.progress(text)
        _has_ended(process, wait=True)  # a command may close its output long before
    finally:
        _kill(process)
        status = process.wait()
    return _make_outcome(output.text, status, context.cancelled)


# `command`: the parameter that policies match with their globs. `grace`: a killed command ends at
# once, but where the machine is busy its thread comes late to the output, which would be lost.
tools = (msgspec.structs.replace(as_tool(shell), command="command", grace=1.0),)


def drop_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return `variables` without those that look like keys, passwords or URLs that hold one."""
    return {
        name: value
        for name, value in variables.items()
        if not environment_secrets({name: value}, wide=True) and redact_text(value) == value
    }


def _read_output(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """Yield the output until the pipe is closed, or the shell has ended and its output is read."""
    chunks: queue.Queue[bytes] = queue.Queue(maxsize=_QUEUED)
    reader_gone = threading.Event()
    threading.Thread(
        target=_pump_output, args=(process, chunks, reader_gone), name="shell output", daemon=True
    ).start()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    ended, silent_polls, last_chunks = False, 0, 0  # both count only once the shell has ended
    try:
        while silent_polls < _SILENT_POLLS and last_chunks < _LAST_CHUNKS:
            if not ended and _has_ended(process):
                ended = True
                _kill(process)  # background processes of the shell hold the pipe open
            try:
                chunk = chunks.get(timeout=_POLL)
            except queue.Empty:
                silent_polls += ended
                continue
            if not chunk:
                break
            last_chunks += ended
            yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)
    finally:
        reader_gone.set()


def _pump_output(
    process: subprocess.Popen[bytes], chunks: queue.Queue[bytes], reader_gone: threading.Event
) -> None:
    """Read the output in a thread, since the pipe may stay open without output; b"" ends it."""
    assert process.stdout is not None
    with process.stdout as pipe:  # once it is closed, what still writes to it gets SIGPIPE
        chunk = None
        while chunk != b"" and not reader_gone.is_set():
            chunk = os.read(pipe.fileno(), _CHUNK)
            while not reader_gone.is_set():
                with suppress(queue.Full):
                    chunks.put(chunk, timeout=1)
                    break


def _has_ended(process: subprocess.Popen[bytes], *, wait: bool = False) -> bool:
    """Return whether the shell has ended; if `_HAS_WAITID`, its id stays reserved for `_kill`."""
    if not _HAS_WAITID:  # this frees the id
        return (process.wait() if wait else process.poll()) is not None
    with suppress(ChildProcessError):  # other code of this process has waited for it
        flags = os.WEXITED | os.WNOWAIT | (0 if wait else os.WNOHANG)
        return os.waitid(os.P_PID, process.pid, flags) is not None
    return True


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, or the shell alone on a system without groups, if it still exists."""
    if _HAS_WAITID and process.returncode is not None:
        return  # its id may belong to another process by now
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _make_outcome(output: str, status: int, cancelled: bool) -> Outcome:
    """Return the outcome of a command that has ended with `status`."""
    if output and not output.endswith("\n") and (cancelled or status):
        output += "\n"  # before a last line that says how the command ended
    if cancelled:
        return Outcome("cancelled", f"{output}[stopped]" if output else Outcome.STOPPED)
    if status:
        ending = f"[exit status {status}]" if status > 0 else f"[killed by signal {-status}]"
        return Outcome("ok", f"{output}{ending}")
    return Outcome("ok", output or "(no output)")
