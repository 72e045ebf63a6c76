"""The process that forks kernels for the tests; see `kernel_forks.py`, which starts it.

It loads what a started kernel has loaded, and the packages that ours needs for the first cell. It
has no thread and no open file when it forks.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import socket
import sys
import time
from types import ModuleType

PRELOADED = (
    "ipykernel.kernelapp",
    "ipykernel.debugger",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "sqlite3",
    "tornado.platform.asyncio",
    "tornado.queues",
)
NEEDED = (
    "anyio._backends._asyncio",
    "annotated_types",
    "difflib",
    "email.message",
    "h11",
    "http.client",
    "httpx",
    "markdown_it",
    "msgspec",
    "nh3",
    "packaging.version",
    "pydantic",
    "tomllib",
    "urllib.request",
    "yaml",
    "zipfile",
)  # neither ipywidgets, which looks for its shell at its import, nor what starts threads


def serve(control: socket.socket) -> str:
    """Fork for each request; return the request in the new process, and "" at the end."""
    kernels: dict[int, tuple[int, int]] = {}  # a process as a descriptor: its id, where to answer
    while True:
        for ready in select.select([control, *kernels], [], [])[0]:
            if ready in kernels:
                pid, to_answer = kernels.pop(ready)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                answer(to_answer, str(code))
                os.close(to_answer)
                os.close(ready)
                continue
            message, (*numbers,), _, _ = socket.recv_fds(control, 1 << 20, 3)
            if not message:
                return ""
            pid = os.fork()
            if pid == 0:
                control.detach()
                os.setsid()  # before the answer: who has the id may end the whole group
                answer(numbers[0], f"{os.getpid():10}")
                for place, number in enumerate(numbers[1:], 1):
                    os.dup2(number, place)
                return message.decode()
            to_answer, *streams = numbers
            kernels[os.pidfd_open(pid)] = pid, to_answer
            for number in streams:
                os.close(number)


def answer(number: int, text: str) -> None:
    """Write into a pipe whose reader may be gone."""
    with contextlib.suppress(BrokenPipeError):
        os.write(number, text.encode())


def become_kernel(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be the process that `python ARGUMENTS` would be."""
    os.closerange(3, 1024)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment, JPY_PARENT_PID=str(os.getppid()))
    time.tzset()
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    if arguments[0] == "-m":
        sys.path.insert(0, folder)
        sys.argv = ["-m", *arguments[2:]]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:  # -P -c CODE
        sys.argv = ["-c", *arguments[3:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(arguments[2], "<string>", "exec"), vars(main))


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder of this file
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # read when ipykernel is loaded
    for module in PRELOADED + NEEDED:
        with contextlib.suppress(ImportError):  # another ipykernel, without debugpy
            importlib.import_module(module)
    gc.freeze()
    if request := serve(socket.socket(fileno=int(sys.argv[1]))):
        become_kernel(*json.loads(request))
