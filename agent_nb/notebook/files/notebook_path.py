"""Which notebook a cell stands in: the file, as far as a kernel can know it.

Why so many ways: a kernel is told the cell's id and nothing else. Our own runner says the path, VS
Code puts it into the namespace, Jupyter's servers put it into the environment (stale after a
rename) and know it themselves.

Rules
- What somebody said on purpose counts first, then what a Jupyter server says, then the environment:
  after a rename it names a file that is gone, or another notebook that has the old name now.
- Asking a Jupyter server takes one second at most, happens only where there is one, and fails in
  silence.
- A path is returned only if there is a file. A relative one is looked up where the kernel runs,
  then where its runner was started (runners start kernels in the notebook's folder).
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIABLE = "AGENT_NB_NOTEBOOK"
SESSION = "JPY_SESSION_NAME"
PATIENCE = 1.0  # seconds, for all servers together


def notebook_path(
    sent: Mapping[str, Any], namespace: Mapping[str, Any], *, ask: bool = True
) -> Path | None:
    """Return the path of the notebook that runs here, or None.

    `sent` is what our runner sent with the cell, `ask` whether Jupyter servers may be asked.
    """
    return told_path(sent, namespace) or (served_path() if ask else None) or session_path()


def told_path(sent: Mapping[str, Any], namespace: Mapping[str, Any]) -> Path | None:
    """Return what a runner, the environment's variable of ours or VS Code say."""
    told = (sent.get("notebook"), os.environ.get(VARIABLE), namespace.get("__vsc_ipynb_file__"))
    return next(
        (
            found
            for path in told
            if isinstance(path, str) and path and (found := _located(path)) is not None
        ),
        None,
    )


def served_path() -> Path | None:
    """Return what the Jupyter server of this kernel says."""
    return (
        next((Path(p) for p in from_servers(kernel_id()) if _is_file(p)), None)
        if os.environ.get(SESSION)
        else None
    )


def session_path() -> Path | None:
    """Return where the notebook was when a Jupyter server started this kernel."""
    path = os.environ.get(SESSION)
    return _located(path) if path else None


def kernel_id() -> str:
    """Return the id that Jupyter gave this kernel ("" when it is not to be seen)."""
    with suppress(Exception):  # not ipykernel, or no connection file
        from ipykernel.connect import get_connection_file

        found = re.search(r"kernel-(.+)\.json$", get_connection_file())
        return found[1] if found else ""
    return ""


def from_servers(kernel: str) -> Iterator[str]:
    """Yield the paths of the notebooks that running Jupyter servers say belong to this kernel."""
    if not kernel:
        return
    until = time.monotonic() + PATIENCE
    for server in _servers():
        left = until - time.monotonic()
        if left <= 0:
            return
        for session in _sessions(server, left):
            if isinstance(session, dict) and (session.get("kernel") or {}).get("id") == kernel:
                yield os.path.join(str(server.get("root_dir", "")), str(session.get("path", "")))


def _servers() -> list[dict[str, Any]]:
    from jupyter_core.paths import jupyter_runtime_dir

    found = []
    for file in sorted(Path(jupyter_runtime_dir()).glob("jpserver-*.json")):
        with suppress(OSError, ValueError):
            server = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(server, dict) and str(server.get("url", "")).startswith(
                ("http://", "https://")
            ):
                found.append(server)
    return found


def _sessions(server: Mapping[str, Any], seconds: float) -> list[Any]:
    from urllib.request import ProxyHandler, Request, build_opener

    # a dead server's file, another user's server, one that wants a password
    with suppress(Exception):
        request = Request(  # noqa: S310  (http)
            f"{server['url']}api/sessions",
            headers={"Authorization": f"token {server.get('token', '')}"},
        )
        with build_opener(ProxyHandler({})).open(request, timeout=seconds) as answer:
            found = json.loads(answer.read(1 << 22))
            return found if isinstance(found, list) else []
    return []


def _located(path: str) -> Path | None:
    # of the shell; a runner that changes folders for its kernel leaves it
    started = os.environ.get("PWD", "")
    return next((Path(p) for p in (path, os.path.join(started, path)) if _is_file(p)), None)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False
