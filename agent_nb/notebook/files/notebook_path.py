"""The sources that name the notebook of a kernel, one function each (`notebook_finder` ranks them).

Why several sources: the protocol sends the cell's id only. Our runner sends the path, VS Code puts
it into the namespace. Jupyter servers put it into the environment, where after a rename it may name
a missing file or another notebook, and also answer requests. They are asked only if one of them
started this kernel (`SESSION`): that one for as long as a busy server may take, since a run whose
record is not found is asked of the model again; the others for about a second in all.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ...host import Launch
from ...wire import as_dict, as_list
from ..runner_options import RunnerOptions

SESSION = "JPY_SESSION_NAME"  # set by Jupyter servers: the path at the start of the kernel
PARENT = "JPY_PARENT_PID"  # set by Jupyter: the process that started this kernel
PARENT_PATIENCE = 10.0  # seconds for the server that started this kernel, which may be busy
PATIENCE = 1.0  # seconds for all other servers together
_LONGEST_ANSWER = 1 << 22  # bytes of a server's answer that are read


def explicit_path(options: RunnerOptions, namespace: Mapping[str, Any]) -> Path | None:
    """Return the path that the runner, our environment variable or VS Code names, or None."""
    of_runner, of_vs_code = options.get("notebook"), namespace.get("__vsc_ipynb_file__")
    for path in (of_runner, os.environ.get(Launch.NOTEBOOK), of_vs_code):
        if isinstance(path, str) and path and (existing := _find_file(path)) is not None:
            return existing
    return None


def served_path() -> Path | None:
    """Return the path that a Jupyter server names for this kernel, None without such a server."""
    paths = ask_servers(kernel_id()) if os.environ.get(SESSION) else ()
    return next((Path(path) for path in paths if _is_file(path)), None)


def session_path() -> Path | None:
    """Return the path that the notebook had when a Jupyter server started this kernel, or None."""
    path = os.environ.get(SESSION)
    return _find_file(path) if path else None


def kernel_id() -> str:
    """Return the id that Jupyter gave this kernel, "" if it is unknown."""
    with suppress(Exception):  # not ipykernel, or no connection file
        from ipykernel.connect import get_connection_file

        matched = re.search(r"kernel-(.+)\.json$", get_connection_file())
        return matched[1] if matched else ""
    return ""


def ask_servers(kernel: str) -> Iterator[str]:
    """Yield the notebook paths that running Jupyter servers name for the kernel with this id.

    The files may not exist. An unknown kernel ("") has no paths. The server that started this
    kernel is asked first.
    """
    if not kernel:
        return
    servers, parent = _list_servers(), os.environ.get(PARENT) or None
    own = [server for server in servers if str(server.get("pid")) == parent]
    yield from _ask_in_time(own, kernel, PARENT_PATIENCE)
    yield from _ask_in_time([s for s in servers if s not in own], kernel, PATIENCE)


def _ask_in_time(
    servers: Iterable[Mapping[str, Any]], kernel: str, seconds: float
) -> Iterator[str]:
    """Yield the notebook paths that these servers name for a kernel within `seconds`."""
    deadline = time.monotonic() + seconds
    for server in servers:
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0:
            return
        # another program may listen on the port of a dead server, and answer anything, or for ever
        sessions: list[Any] = []
        fetch = partial(_fetch_sessions, server, seconds_left, sessions)
        thread = threading.Thread(target=fetch, daemon=True)
        thread.start()
        thread.join(seconds_left)
        for session in map(as_dict, list(sessions)):
            if as_dict(session.get("kernel")).get("id") == kernel:
                yield os.path.join(str(server.get("root_dir", "")), str(session.get("path", "")))


def _list_servers() -> list[dict[str, Any]]:
    """Return what running Jupyter servers wrote about themselves: `url`, `token`, `root_dir` …"""
    from jupyter_core.paths import jupyter_runtime_dir

    servers = []
    for file in sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json")):
        with suppress(OSError, ValueError):
            server = json.loads(file.read_text(encoding="utf-8"))
            url = str(server.get("url", "")) if isinstance(server, dict) else ""
            if url.startswith(("http://", "https://")):
                servers.append(server)
    return servers


def _fetch_sessions(server: Mapping[str, Any], seconds: float, sessions: list[Any]) -> None:
    """Add the sessions of a server; none if it is dead, another user's, or wants a password.

    `seconds`: the longest wait for a piece of the answer.
    """
    from urllib.request import ProxyHandler, Request, build_opener

    with suppress(Exception):
        request = Request(  # noqa: S310  (http)
            f"{server['url']}api/sessions",
            headers={"Authorization": f"token {server.get('token', '')}"},
        )
        # no proxy: the servers run on this machine
        with build_opener(ProxyHandler({})).open(request, timeout=seconds) as answer:
            sessions += as_list(json.loads(answer.read(_LONGEST_ANSWER)))


def _find_file(path: str) -> Path | None:
    """Return the existing file of a path, relative to this folder or to the runner's, or None."""
    # PWD is set by the shell; a runner that changes the folder for its kernel keeps it
    runner_folder = os.environ.get("PWD", "")
    return next((Path(p) for p in (path, os.path.join(runner_folder, path)) if _is_file(p)), None)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False
