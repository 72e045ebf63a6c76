"""A notebook of a Jupyter server, open in a browser; every wait is for a condition."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import nbformat
from helpers.jupyter_server import Server

CURRENT = "window.jupyterapp?.shell?.currentWidget"
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


def _said(message: Any) -> list[tuple[str, str]]:
    """Return kind and text of a message of the page's console, an error with the address it is
    about.

    Fonts are left out: the server remembers by its name alone where a static file lies, so those
    that JupyterLab and Notebook share are refused to the one that asks second.
    """
    place = message.location.get("url", "") if message.type == "error" else ""
    return [] if place.endswith(".woff2") else [(message.type, f"{message.text} {place}".strip())]


WIDGETS = "/@jupyter-widgets/jupyterlab-manager/"
# When a box is removed while its children are made, ipywidgets passes a message on to its view, and
# adds the children to it; both fail without consequence.
REMOVED = ("reading 'processLuminoMessage'", "Could not add child view to box")


class Notebook:
    """A notebook of a server, open in the browser. Cells are known by their index."""

    def __init__(
        self, context: Any, server: Server, app: str, name: str, *, busy: bool = False
    ) -> None:
        self.server, self.app, self.name = server, app, name
        self.console: list[tuple[str, str]] = []
        self._context = context
        self.page: Any = None
        self.open(busy=busy)

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

    def settle(self) -> None:
        """Interrupt the kernel until no started cell runs, so that a failed test leaves none."""
        for _ in range(3):
            try:
                self.page.wait_for_function(
                    "() => Object.values(window.ended || {}).every(Boolean)", timeout=5000
                )
            except Exception:
                self.command("notebook:interrupt-kernel")
            else:
                return

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

    def press(self, index: int, *labels: str) -> None:
        """Press buttons in a cell's output. The second *Deny* is the one beside the words."""
        for before, label in zip(("", *labels), labels, strict=False):
            if before == label:
                self.button(index, "Back").wait_for()
            self.button(index, label).click()

    def unfold(self, index: int, text: str) -> None:
        """Open the first fold of a saved page whose line has a text, unless it is open."""
        line = self.page.locator("summary", has_text=text)
        fold = self.output(index).locator("details", has=line).first
        fold.wait_for()
        if fold.get_attribute("open") is None:
            fold.locator("summary").first.click()

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

    def shots(self, name: str) -> None:
        """Take screenshots in both themes if AGENT_NB_SHOTS names a folder for them."""
        if os.environ.get("AGENT_NB_SHOTS"):
            self.shot(f"{name}-light")
            self.theme("JupyterLab Dark")
            self.shot(f"{name}-dark")
            self.theme("JupyterLab Light")

    def theme(self, name: str) -> None:
        """Change the colours of the front end: `JupyterLab Light` or `JupyterLab Dark`."""
        self.page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name
        )
        self.page.locator(f"body[data-jp-theme-name='{name}']").wait_for(state="attached")
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")

    def errors(self) -> list[str]:
        """Return the errors of the page's console so far, without those in `REMOVED`."""
        return [
            text
            for kind, text in self.console
            if kind == "error" and not (WIDGETS in text and any(words in text for words in REMOVED))
        ]
