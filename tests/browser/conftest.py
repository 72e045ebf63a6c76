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

import importlib.resources
import importlib.util
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import nbformat
import pytest
from helpers.jupyter_server import FLAGS, Server, browser_path, missing
from helpers.lacking import lacking
from helpers.notebook_page import Notebook
from nbformat.v4 import new_code_cell, new_notebook

NUMBERS = itertools.count(1)


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


@pytest.fixture
def settled(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that failed leaves no cell of its `front` running for the next test, or for its own
    second try.
    """
    yield
    request.getfixturevalue("front").settle()
