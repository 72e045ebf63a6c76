"""Cards on the pages of the book can be read in the light and in the dark."""

import importlib.resources
import importlib.util

import pytest
from helpers.jupyter_server import browser_path
from helpers.lacking import lacking, needed
from helpers.paths import EXAMPLES

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.timeout(300)]
NOTEBOOKS = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))
CONTRAST = """async () => {
    document.querySelectorAll('.agent-nb details').forEach(d => { d.open = true; });
    const found = await window.axe.run({include: [['.agent-nb']]}, {runOnly: ['color-contrast']});
    return found.violations.flatMap(v => v.nodes.map(n => `${n.failureSummary} ${n.html}`));
}"""


@pytest.fixture(scope="module")
def browser():
    needed("playwright")
    if not browser_path():
        lacking("there is no browser")
    if importlib.util.find_spec("axe_playwright_python") is None:
        lacking("axe-playwright-python is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_card_has_enough_contrast(built, browser, name, scheme):
    axe = importlib.resources.files("axe_playwright_python") / "axe.min.js"
    page = browser.new_page(color_scheme=scheme)
    page.route("http*://**", lambda route: route.abort())
    page.goto(f"file://{built}/{name}.html")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    assert page.locator(".agent-nb").count() > 0
    page.evaluate(axe.read_text(encoding="utf-8"))
    assert page.evaluate(CONTRAST) == []
    page.close()
