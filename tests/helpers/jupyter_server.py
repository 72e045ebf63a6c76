"""A Jupyter server for JupyterLab and Notebook 7, and what else a browser test needs."""

from __future__ import annotations

import contextlib
import http.client
import importlib.resources
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from helpers.lacking import lacking
from helpers.paths import python_path
from helpers.ports import take_port

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]
OTHERS = [
    python for python in os.environ.get("AGENT_NB_TEST_KERNELS", "").split(os.pathsep) if python
]
PRIVATE = ("KEY", "TOKEN", "SECRET", "PASSWORD", "_PROXY")
SETTINGS: dict[str, dict[str, Any]] = {
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
    # ms; by default a kernel that answers after a second, as a busy one does, offers nothing
    "@jupyterlab/completer-extension/manager": {"providerTimeout": 60_000},
}
# no proxy stands between a test and its server
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def browser_path() -> str:
    """Return the browser to use ("" if there is none)."""
    return os.environ.get("AGENT_NB_CHROMIUM") or next(
        (found for name in BROWSERS if (found := shutil.which(name))), ""
    )


def missing() -> str:
    """Return what is missing to drive a browser, or an empty string."""
    for name in ("playwright", "jupyterlab"):
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    return "" if browser_path() else f"no browser: none of {', '.join(BROWSERS)} is installed"


def python_with(version: str) -> str:
    """Return a Python of `AGENT_NB_TEST_KERNELS` whose ipykernel has this version, "" if there is
    none.
    """
    ask = "import ipykernel; print(ipykernel.__version__)"
    for python in OTHERS:
        found = subprocess.run(
            [python, "-c", ask], capture_output=True, text=True, check=False
        ).stdout
        if f"{found.strip()}.".startswith(f"{version}."):
            return python
    return ""


class Server:
    """A Jupyter server for both front ends, with settings, kernels and runtime files of its own."""

    def __init__(self, folder: Path, *, settings: dict[str, dict[str, Any]] | None = None) -> None:
        self.folder, self.root, self.url = folder, folder / "root", ""
        self.root.mkdir(parents=True)
        for name, value in {**SETTINGS, **(settings or {})}.items():
            self.setting(name, value)
        hook = {"ServerApp": {"jpserver_extensions": {"agent_nb.notebook.presave": True}}}
        self._json(folder / "config" / "jupyter_server_config.json", hook)
        # each page would have Node look for a build that nobody needs, for seconds of work
        self._json(folder / "config" / "labconfig" / "page_config.json", {"buildCheck": False})
        self._log = (folder / "server.log").open("w")
        self._start(attempts=3)

    def _start(self, attempts: int) -> None:
        """Start the server; when somebody else was given the port meanwhile, with another one."""
        port = take_port()
        self.url = f"http://127.0.0.1:{port}"
        options = [
            "--no-browser",
            "--allow-root",
            f"--port={port}",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=",
            "--ServerApp.password=",
            "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
            "--ServerApp.disable_check_xsrf=True",
            f"--ServerApp.root_dir={self.root}",
        ]
        command = [sys.executable, "-m", "jupyterlab", *options]
        self._process = subprocess.Popen(
            command,
            env=self._environment(),
            cwd=self.folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        if not self._answers():
            self._process.kill()
            self._process.wait()
            if attempts == 1:
                raise RuntimeError(
                    f"the server did not start: {(self.folder / 'server.log').read_text()[-2000:]}"
                )
            self._start(attempts - 1)

    def _environment(self) -> dict[str, str]:
        own = {
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "spaces",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTER_DATA_DIR": "data",
            "IPYTHONDIR": "ipython",
            "XDG_CONFIG_HOME": "xdg-config",
            "XDG_STATE_HOME": "xdg-state",
            "XDG_DATA_HOME": "xdg-data",
            "XDG_CACHE_HOME": "xdg-cache",
        }
        kept = {
            name: value for name, value in os.environ.items() if not name.upper().endswith(PRIVATE)
        }
        path = python_path()
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {
            **kept,
            **{k: str(self.folder / v) for k, v in own.items()},
            "PYTHONPATH": path,
            "PATH": programs,
        }

    def setting(self, name: str, value: Any) -> None:
        """Write the user's settings of a plug-in, for the pages that are opened from now on."""
        self._json(self.folder / "settings" / f"{name}.jupyterlab-settings", value)

    def _json(self, path: Path, value: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))

    def _answers(self) -> bool:
        """Wait until the server answers; return False when it has ended or says nothing for two
        minutes.
        """
        end = time.monotonic() + 120
        while self._process.poll() is None and time.monotonic() < end:
            # another program that has the port speaks no HTTP
            with contextlib.suppress(OSError, http.client.HTTPException):
                LOCAL.open(f"{self.url}/api", timeout=5).close()
                return True
            time.sleep(0.25)
        return False

    def kernel(self, version: str) -> str:
        """Return the name of a kernel: `this` Python's, or one with another version of
        ipykernel.
        """
        if version == "this":
            return "python3"
        python = python_with(version)
        if not python:
            lacking(
                f"no other kernel: AGENT_NB_TEST_KERNELS names no Python with ipykernel {version}"
            )
        spec = {
            "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": version,
            "language": "python",
        }
        name = f"ipykernel-{version}"
        self._json(self.folder / "data" / "kernels" / name / "kernel.json", spec)
        return name

    def kernels(self) -> list[dict[str, Any]]:
        """Return the kernels that run, as the server describes them."""
        with LOCAL.open(f"{self.url}/api/kernels", timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def idle(self, seconds: float = 90) -> None:
        """Wait until no kernel is at work."""
        end = time.monotonic() + seconds
        while any(kernel["execution_state"] != "idle" for kernel in self.kernels()):
            assert time.monotonic() < end, "a kernel is still at work"
            time.sleep(0.1)

    def end_kernels(self) -> None:
        """End every kernel, once the server has noticed that its pages are closed.

        A kernel that ends sooner leaves the server's connections to it behind: they try its ports
        as long as the server runs. That takes processor time, and another test may get such a
        port.
        """
        end = time.monotonic() + 3  # it now and then counts a page too many, of a restarted kernel
        while any(kernel["connections"] for kernel in self.kernels()) and time.monotonic() < end:
            time.sleep(0.05)
        with ThreadPoolExecutor() as threads:  # each takes a second to end
            list(threads.map(self._end_kernel, [kernel["id"] for kernel in self.kernels()]))

    def _end_kernel(self, name: str) -> None:
        request = urllib.request.Request(f"{self.url}/api/kernels/{name}", method="DELETE")
        LOCAL.open(request, timeout=60).close()

    def stop(self) -> None:
        """End the kernels, then the server."""
        with contextlib.suppress(OSError, ValueError):
            self.end_kernels()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._log.close()
