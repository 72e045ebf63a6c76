"""The book builds without a warning, its links lead somewhere, and its pages can be read."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from helpers.paths import EXAMPLES

import agent_nb

pytestmark = [pytest.mark.extra, pytest.mark.long, pytest.mark.timeout(300)]
LONGEST = 2000  # words: ten minutes
ARTICLE = re.compile(r'<article role="main"[^>]*>(.*?)</article>', re.DOTALL)
NOT_READ = re.compile(r"<(script|style|pre)\b.*?</\1>|<[^>]+>", re.DOTALL)


class Links(HTMLParser):
    """The links of a page and the ids that links may name."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(values["id"])
        for name in ("href", "src"):
            if tag in ("a", "img", "link", "script") and values.get(name):
                self.links.append(values[name])


def pages(built):
    return {path: Links(path.read_text(encoding="utf-8")) for path in built.rglob("*.html")}


def faults_of(path, page, known):
    """Yield the links of a page that lead nowhere."""
    for link in page.links:
        url = urlsplit(link)
        if url.scheme or url.netloc:
            continue
        target = (path.parent / unquote(url.path)).resolve() if url.path else path
        if not target.is_file():
            yield f"{path.name}: {link}"
        elif url.fragment and target in known and unquote(url.fragment) not in known[target].ids:
            yield f"{path.name}: {link} (there is no such place)"


def test_every_link_inside_the_book_leads_somewhere(built):
    known = pages(built)
    assert len(known) > 50
    assert [fault for path, page in known.items() for fault in faults_of(path, page, known)] == []


def test_each_public_name_has_one_entry(built):
    text = [path.read_text(encoding="utf-8") for path in built.rglob("*.html")]
    for name in agent_nb.__all__:
        assert sum(t.count(f'id="agent_nb.{name}"') for t in text) == 1, name


def test_no_page_takes_more_than_ten_minutes(built):
    words = {}
    for path in built.rglob("*.html"):
        article = ARTICLE.search(path.read_text(encoding="utf-8"))
        if article is not None:
            words[path.name] = len(NOT_READ.sub(" ", article[1]).split())
    assert {name: count for name, count in words.items() if count > LONGEST} == {}


def test_cards_have_colours_of_their_own_where_no_theme_gives_any(built):
    for path in built.glob("*.html"):
        assert re.findall(r"var\(--jp-[\w-]+\)", path.read_text(encoding="utf-8")) == [], path.name


def test_the_pages_of_the_examples_show_their_cards(built):
    names = sorted(path.stem for path in EXAMPLES.glob("*.ipynb"))
    assert names
    for name in names:
        page = (built / f"{name}.html").read_text(encoding="utf-8")
        footer = "events</span>" if name.startswith("tape") else "_agent.to_frame()"
        assert footer in page or "map" in name or name == "evaluate", name


def test_no_page_names_a_path_of_this_machine(built):
    for path in Path(built).rglob("book/**/*.html"):
        assert str(EXAMPLES) not in path.read_text(encoding="utf-8"), path.name
