"""`nbconvert --to html` of the examples, with the network closed: everything of a run can be read,
nothing is fetched, nothing is missing.

The page itself names scripts elsewhere (nbconvert's template: RequireJS, MathJax); what is asserted
here is our part of it.
"""

import os
import re
import shutil

import pytest
from helpers.lacking import lacking

from agent_nb.rows.recorded_runs import runs

pytestmark = [
    pytest.mark.usefixtures("others"),
    pytest.mark.kernel,
    pytest.mark.extra,
    pytest.mark.timeout(300),
]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FETCHING = ("src", "href", "srcset", "poster", "data", "action", "background")
WIDGETS = (
    "application/vnd.jupyter.widget-view+json",
    "application/vnd.jupyter.widget-state+json",
    "Error displaying widget",
)


@pytest.fixture
def page(converted, example):
    """The parsed page of an example."""
    from bs4 import BeautifulSoup

    return BeautifulSoup(converted[example].read_text(encoding="utf-8"), "html.parser")


@pytest.fixture
def cards(page):
    """What we drew on the page: one element per run that is shown."""
    return [
        el for el in page.select("div.agent-nb") if el.find_parent("div", class_="agent-nb") is None
    ]


def words(text):
    return set(re.findall(r"\w+", text))


def told(run, *types):
    """The words of a run's events that a page shows: without the addresses of links, the languages
    of fences, the numbers of lists.
    """
    texts = [e.content for e in run.log.of(*types) if isinstance(e.content, str)]
    return words(
        "\n".join(
            re.sub(r"https?://\S+|^\s*```\w*|^\s*\d+\.", "", text, flags=re.MULTILINE)
            for text in texts
        )
    )


@pytest.mark.few(2)
def test_our_part_refers_to_nothing_elsewhere(cards):
    assert cards
    for card in cards:
        elements = [card, *card.find_all(True)]
        assert not {el.name for el in elements} & {
            "script",
            "link",
            "iframe",
            "object",
            "embed",
            "style",
            "base",
            "form",
        }
        fetched = [(el.name, name, el.get(name)) for el in elements for name in FETCHING]
        assert not [f for f in fetched if f[2] and not f[2].startswith("data:image/")]
        assert not [
            el["style"] for el in elements if re.search(r"url\(|@import", el.get("style", ""))
        ]


def join_parts(cards):
    """The words of each run that is shown: a page that charts divide has several cards."""
    shown = []
    for card in cards:
        if shown and card["aria-label"].endswith("(continued)"):
            shown[-1] |= words(card.get_text(" "))
        else:
            shown.append(words(card.get_text(" ")))
    return shown


@pytest.mark.few(2)
def test_thoughts_answers_prompts_and_calls_of_every_run_are_on_the_page(
    page, cards, example, original
):
    shown = join_parts(cards)
    # the prompt of a run stands in the cell above its card
    cells = words(" ".join(el.get_text(" ") for el in page.select("div.jp-InputArea")))
    newest = {run.cell: run for run in runs(original(example))}
    assert newest
    for run in newest.values():
        wanted = told(run, "think", "respond") | words(
            " ".join(
                "A cell for you" if c.name == "add_cell" else c.name for c in run.log.of("call")
            )
        )
        assert any(wanted <= card for card in shown), min(
            (wanted - card for card in shown), key=len
        )
        prompt = told(run, "user")
        assert any(prompt <= card | cells for card in shown)


@pytest.mark.few(2)
def test_there_is_no_widget_and_no_complaint_about_one(converted, example):
    text = converted[example].read_text(encoding="utf-8")
    assert not [word for word in WIDGETS if word in text]


@pytest.mark.long
def test_executing_and_converting_in_one_step_shows_the_cards(examples, tool):
    path = examples / "scripted.ipynb"
    tool(
        "nbconvert",
        "--execute",
        "--to",
        "html",
        path,
        cwd=examples,
        AGENT_NB_NOTEBOOK="scripted.ipynb",
    )
    text = path.with_suffix(".html").read_text(encoding="utf-8")
    assert text.count("replayed, recorded") == len(list(runs(path)))
    assert "28.83" in text
    assert not [word for word in WIDGETS if word in text]


@pytest.mark.browser
def test_a_browser_without_a_network_shows_all_of_it(converted, original):
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = os.environ.get("AGENT_NB_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if program is None:
        lacking("there is no Chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"], timeout=120_000
        )
        page = browser.new_context(offline=True).new_page()
        for name, path in converted.items():
            page.goto(path.as_uri())
            page.evaluate(
                "document.querySelectorAll('div.agent-nb details').forEach(d => d.open = true)"
            )
            seen = words(" ".join(page.locator("div.agent-nb").all_inner_texts()))
            newest = {run.cell: run for run in runs(original(name))}.values()
            assert set().union(*(told(run, "think", "respond") for run in newest)) <= seen
        browser.close()
