"""A real JupyterLab or Notebook 7 in a real Chromium: `opened(app, kernel, cells=…)` gives an open
notebook.

What is missing (Playwright, JupyterLab, a browser, a kernel) is a skip with its reason; with
CI=true it is a failure.

- `AGENT_NB_CHROMIUM` names the browser (else the first of PATH).
- `AGENT_NB_TEST_KERNELS`: Pythons with other versions of ipykernel, separated as in PATH.
- `AGENT_NB_SHOTS`: the folder for screenshots (else a temporary one).

Every wait is for a condition. One server serves JupyterLab and Notebook 7. Playwright starts anew
for each module: while it runs, its event loop counts as the one of this thread, and other tests
could not run theirs.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.resources
import importlib.util
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from helpers.paths import python_path
from nbformat.v4 import new_code_cell, new_notebook

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
CURRENT = "window.jupyterapp?.shell?.currentWidget"
NUMBERS = itertools.count(1)
SETTINGS: dict[str, dict[str, Any]] = {
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}
START = f"""async index => {{
    const cells = {CURRENT}.content;
    cells.activeCellIndex = index;
    cells.deselectAll();
    await cells.scrollToItem(index);
    window.ended = window.ended || {{}};
    window.ended[index] = false;
    window.jupyterapp.commands.execute('notebook:run-cell').finally(() => {{ window.ended[index] = true; }});
}}"""
READY = f"""() => {{
    const context = {CURRENT}?.sessionContext;
    return Boolean({CURRENT}?.content?.widgets?.length && context?.isReady && context.session?.kernel?.status === 'idle');
}}"""
POLL = 50  # ms; animation frames, the default, stand still in a tab behind another
PATIENCE = 90_000  # ms that a page may take for what it does at once on a quiet machine
# no proxy stands between a test and its server
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))
OPENING = 60_000  # ms; ipykernel 7 loses the first request of a page now and then
DIALOG = "a dialog is shown: "
WATCH_DIALOGS = f"""
    const watch = () => new MutationObserver(changes => changes.forEach(change => change.addedNodes.forEach(node => {{
        if (node.nodeType === Node.ELEMENT_NODE && node.classList.contains('jp-Dialog')) console.debug('{DIALOG}' + node.innerText);
    }}))).observe(document.body, {{childList: true}});
    document.addEventListener('DOMContentLoaded', watch);
"""
SAVE = "() => { window.saved = false; window.jupyterapp.commands.execute('docmanager:save').finally(() => { window.saved = true; }); }"
RESTART = """() => {
    window.restarted = false;
    window.jupyterapp.commands.execute('notebook:restart-kernel').then(() => { window.restarted = true; });
}"""
SAVED = "() => window.saved || Boolean(document.querySelector('.jp-Dialog'))"
EVENTS = "[{'type': e.type, **{f: getattr(e, f) for f in e.__struct_fields__}} for e in _agent.log]"


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


def lacking(reason: str) -> None:
    """Skip, or fail where everything must be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


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


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """A Jupyter server for both front ends, with settings, kernels and runtime files of its own."""

    def __init__(self, folder: Path, *, settings: dict[str, dict[str, Any]] | None = None) -> None:
        self.folder, self.root, self.url = folder, folder / "root", ""
        self.root.mkdir(parents=True)
        for name, value in {**SETTINGS, **(settings or {})}.items():
            self.setting(name, value)
        hook = {"ServerApp": {"jpserver_extensions": {"agent_nb.notebook.presave": True}}}
        self._json(folder / "config" / "jupyter_server_config.json", hook)
        self._log = (folder / "server.log").open("w")
        self._start(attempts=3)

    def _start(self, attempts: int) -> None:
        """Start the server; when somebody else was given the port meanwhile, with another one."""
        port = free_port()
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
            with contextlib.suppress(OSError):
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
        """End every kernel."""
        for kernel in self.kernels():
            request = urllib.request.Request(
                f"{self.url}/api/kernels/{kernel['id']}", method="DELETE"
            )
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


def _said(message: Any) -> list[tuple[str, str]]:
    """Return kind and text of a message of the page's console, an error with the address it is
    about.

    Fonts are left out: the server remembers by its name alone where a static file lies, so those
    that JupyterLab and Notebook share are refused to the one that asks second.
    """
    place = message.location.get("url", "") if message.type == "error" else ""
    return [] if place.endswith(".woff2") else [(message.type, f"{message.text} {place}".strip())]


class Notebook:
    """A notebook of a server, open in the browser. Cells are known by their index."""

    def __init__(self, context: Any, server: Server, app: str, name: str) -> None:
        self.server, self.app, self.name = server, app, name
        self.console: list[tuple[str, str]] = []
        self._context = context
        self.page: Any = None
        self.open()

    def open(self, *, busy: bool = False) -> None:
        """Open the notebook in a new tab and wait for its kernel, which may be `busy`.

        If the first tab gets no kernel, a second one is opened, as a user would do.
        """
        ready = READY.replace("=== 'idle'", "") if busy else READY
        for last in (False, True):
            self._new_tab()
            try:
                self.page.wait_for_function(ready, polling=POLL, timeout=OPENING)
            except Exception as fault:
                page = self.page.evaluate(
                    f"() => String({CURRENT}?.sessionContext?.kernelDisplayStatus)"
                )
                print(
                    f"{self.name}: no kernel; page: {page}; server: {self.server.kernels()}; {fault}"
                )
                if last:
                    raise
                self.close()
            else:
                return

    def _new_tab(self) -> None:
        self.page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.add_init_script(WATCH_DIALOGS)
        self.page.on("console", lambda message: self.console.extend(_said(message)))
        self.page.on(
            "dialog",
            lambda dialog: (self.console.append(("dialog", dialog.message)), dialog.dismiss()),
        )
        place = f"lab/tree/{self.name}?reset" if self.app == "lab" else f"notebooks/{self.name}"
        self.page.goto(f"{self.server.url}/{place}")

    def close(self) -> None:
        """Close the tab."""
        if not self.page.is_closed():
            self.page.close()

    def command(self, name: str) -> None:
        """Run a command of the application, to its end."""
        self.page.evaluate("n=>window.jupyterapp.commands.execute(n).then(()=>null)", name)

    def select(self, index: int, *, column: int | None = None) -> None:
        """Make a cell the active one; `column`: with the cursor there in its text. What is done
        next is a step of its own to undo.
        """
        self.page.bring_to_front()
        self.page.evaluate(f"() => {CURRENT}.content.model.sharedModel.undoManager.stopCapturing()")
        offset = f"cells.mode='edit'; const e=cells.activeCell.editor; e.setCursorPosition(e.getPositionAt({column}));"
        select = f"const cells={CURRENT}.content; cells.mode='command'; cells.activeCellIndex=i; cells.deselectAll();"
        self.page.evaluate(
            f"async i=>{{{select} await cells.scrollToItem(i); {offset if column is not None else ''}}}",
            index,
        )

    def ids(self) -> list[str]:
        """Return the ids of the cells."""
        found: list[str] = self.page.evaluate(f"()=>{CURRENT}.content.widgets.map(w => w.model.id)")
        return found

    def dialogs(self) -> list[str]:
        """Return the texts of all dialogs that the front end has shown with this notebook, also
        before the page was opened again.
        """
        return [text.removeprefix(DIALOG) for _, text in self.console if text.startswith(DIALOG)]

    def answer(self, label: str) -> None:
        """Press a button of the dialog that is open, or about to open, and wait until
        it is closed.
        """
        dialog = self.page.locator(".jp-Dialog")
        dialog.locator(".jp-Dialog-button", has_text=label).click()
        dialog.wait_for(state="detached")

    def add(self, code: str) -> int:
        """Add a code cell at the end and return its index."""
        insert = f"s=>{{const m={CURRENT}.content.model.sharedModel; m.insertCell(m.cells.length,{{cell_type:'code',source:s}});"
        return int(self.page.evaluate(f"{insert} return m.cells.length-1}}", code))

    def start(self, index: int) -> None:
        """Run a cell without waiting for it, with its tab in front."""
        self.page.bring_to_front()
        self.page.evaluate(START, index)

    def wait(self, index: int, seconds: float = 90) -> None:
        """Wait until a started cell has ended."""
        self.page.wait_for_function(
            "index => window.ended[index]", arg=index, timeout=1000 * seconds, polling=POLL
        )

    def begin(self, code: str) -> int:
        """Add a cell and run it without waiting; return its index."""
        index = self.add(code)
        self.start(index)
        return index

    def run(self, code: str) -> int:
        """Add a cell, run it to its end, and return its index."""
        index = self.begin(code)
        self.wait(index)
        return index

    def output(self, index: int) -> Any:
        """Return the locator of a cell's output."""
        return (
            self.page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".jp-Cell-outputWrapper")
        )

    def sees(self, index: int, text: str, seconds: float = 60) -> None:
        """Wait until a cell's output shows a text."""
        shown = (
            f"{CURRENT}.content.widgets[i].node.querySelector('.jp-Cell-outputWrapper')?.innerText"
        )
        self.page.wait_for_function(
            f"([i,t])=>({shown}||'').includes(t)",
            arg=[index, text],
            timeout=1000 * seconds,
            polling=POLL,
        )

    def button(self, index: int, label: str) -> Any:
        """Return the locator of a button in a cell's output."""
        return self.output(index).get_by_role("button", name=label, exact=True)

    def value(self, expression: str) -> Any:
        """Return the value of a Python expression in the kernel, as JSON."""
        ask = {"v": f"__import__('json').dumps({expression}, default=str)"}
        code = f"""async u=>{{const k={CURRENT}.sessionContext.session.kernel;
            const f=k.requestExecute({{code:'',silent:true,store_history:false,user_expressions:u}}); return (await f.done).content}}"""
        found = self.page.evaluate(code, ask)["user_expressions"]["v"]
        assert found["status"] == "ok", found
        return json.loads(ast.literal_eval(found["data"]["text/plain"]))

    def events(self) -> list[dict[str, Any]]:
        """Return the events of the latest run, every field of them."""
        made: list[dict[str, Any]] = self.value(EVENTS)
        return made

    def save(self) -> Any:
        """Save the notebook and return what is in the file then."""
        before = self.written()
        for _ in range(20):  # nothing is written when another save is just going on
            self.page.evaluate(SAVE)
            self.page.wait_for_function(SAVED, polling=POLL)
            asked = self.page.locator(".jp-Dialog").all_inner_texts()
            assert not asked, f"the front end asks instead of saving: {asked}"
            if self.written() != before:
                break
        return nbformat.read(self.server.root / self.name, 4)

    def rename(self, name: str) -> None:
        """Give the file another name, as the user does."""
        if self.app == "lab":
            self.page.evaluate("() => { window.jupyterapp.commands.execute('docmanager:rename'); }")
        else:
            self.page.locator("#jp-title h1").click()
        self.page.locator(".jp-Dialog input").first.fill(name)
        self.answer("Rename")
        self.page.wait_for_function(f"n => {CURRENT}.context.path === n", arg=name, polling=POLL)
        self.name = name

    def duplicate(self) -> str:
        """Duplicate the file, as the user does, and return the name of the copy; Notebook 7 can do
        so in its list of files.
        """
        copy = self.name.replace(".ipynb", "-Copy1.ipynb")
        if self.app == "lab":
            self.command("docmanager:duplicate")
            return copy
        files = self._context.new_page()
        files.set_default_timeout(PATIENCE)
        files.goto(f"{self.server.url}/tree")
        listed = files.locator(".jp-DirListing-item")
        listed.filter(has_text=self.name).click()
        files.evaluate(
            "() => window.jupyterapp.commands.execute('filebrowser:duplicate').then(() => null)"
        )
        listed.filter(has_text=copy).wait_for()
        files.close()
        return copy

    def restart(self) -> None:
        """Restart the kernel and wait until it is ready."""
        self.page.evaluate(RESTART)
        self.answer("Restart")
        self.page.wait_for_function("() => window.restarted", polling=POLL)
        self.page.wait_for_function(READY, polling=POLL)

    def written(self) -> int:
        """Return when the file was written, in ns."""
        return (self.server.root / self.name).stat().st_mtime_ns

    def shot(self, name: str, **options: Any) -> Path:
        """Take a screenshot and return its path."""
        folder = Path(os.environ.get("AGENT_NB_SHOTS") or self.server.folder / "shots")
        folder.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=folder / f"{name}.png", **options)
        return folder / f"{name}.png"

    def theme(self, name: str) -> None:
        """Change the colours of the front end: `JupyterLab Light` or `JupyterLab Dark`."""
        self.page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name
        )
        self.page.locator(f"body[data-jp-theme-name='{name}']").wait_for(state="attached")
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def errors(self) -> list[str]:
        """Return the errors of the page's console so far."""
        return [text for kind, text in self.console if kind == "error"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One Jupyter server for all tests."""
    reason = missing()
    if reason:
        lacking(reason)
    made = Server(tmp_path_factory.mktemp("jupyter"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def browser_context() -> Iterator[Any]:
    """A browser with a profile of its own."""
    reason = missing()
    if reason:
        lacking(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=FLAGS, timeout=120_000)
        context = browser.new_context(viewport={"width": 1200, "height": 1500})
        yield context
        context.close()
        browser.close()


@pytest.fixture(scope="session")
def new_page() -> type[Notebook]:
    """The class of open notebooks, for a test that makes its own browser context:
    `new_page(context, server, app, name)`.
    """
    return Notebook


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which finds what is not accessible in a page."""
    if importlib.util.find_spec("axe_playwright_python") is None:
        lacking("axe-playwright-python is not installed")
    return (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text(
        encoding="utf-8"
    )


@pytest.fixture(scope="module")
def opened(browser_context: Any, server: Server) -> Iterator[Callable[..., Notebook]]:
    """A function that opens a new notebook: `opened(app="lab", kernel="this", *, cells=(), name="",
    outputs=None)`.

    `app` is `lab` or `notebook`, `kernel` a version of ipykernel or `this`; `outputs` gives the
    cells outputs by index. Tabs and kernels end with the module.
    """
    notebooks: list[Notebook] = []

    def make(
        app: str = "lab",
        kernel: str = "this",
        *,
        cells: tuple[str, ...] = (),
        name: str = "",
        outputs: dict[int, Any] | None = None,
    ) -> Notebook:
        if app == "notebook" and importlib.util.find_spec("notebook") is None:
            lacking("notebook is not installed")
        spec = server.kernel(kernel)
        made = new_notebook(cells=[new_code_cell(c) for c in cells])
        made.metadata.kernelspec = {"name": spec, "display_name": spec, "language": "python"}
        for index, shown in (outputs or {}).items():
            made.cells[index].outputs = shown
        file = f"{name or 'notebook'}-{next(NUMBERS)}.ipynb"
        nbformat.write(made, server.root / file)
        notebooks.append(Notebook(browser_context, server, app, file))
        return notebooks[-1]

    yield make
    for notebook in notebooks:
        notebook.close()
    server.end_kernels()
