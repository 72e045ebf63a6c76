"""Hostile texts in every place of a run: no static form runs, loads or covers anything."""

from __future__ import annotations

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.view import nodes, theme
from agent_nb.view.bundle import make_bundle
from agent_nb.view.draw import html, markdown
from agent_nb.view.markdown.html import pre_style
from agent_nb.view.markdown.sanitize import clean
from agent_nb.view.markdown.stream import MarkdownStream
from agent_nb.view.state.fold import RunView
from agent_nb.view.visible import show_hidden, show_output, show_prose
from agent_nb.wire import escape_unprintable, find_hidden, strip_hidden


def test_the_corpus_is_large(hostile):
    assert len(hostile) >= 150


@pytest.fixture(params=["some", pytest.param("all", marks=pytest.mark.long)])
def texts(request, hostile):
    """The corpus, or for the fast runs each tenth text of it."""
    return list(hostile)[::10] if request.param == "some" else hostile


def test_no_hostile_text_survives_in_the_html(texts, hostile_run, hazards):
    found = {
        text: hazards(make_bundle(hostile_run(text), thoughts="show")["text/html"])
        for text in texts
    }
    assert {text: h for text, h in found.items() if h} == {}


def test_no_hostile_text_survives_while_an_answer_streams(texts, hazards):
    for text in texts:
        stream = MarkdownStream()
        for char in text:
            stream.feed(char)
            assert hazards(stream.html()) == []


def test_no_hostile_html_survives_the_sanitiser(hostile, hazards):
    assert {text: h for text in hostile if (h := hazards(clean(text)))} == {}


def test_markdown_is_harmless_even_with_raw_html_enabled(texts, hostile_run):
    """The markdown form, rendered with raw HTML on: no tag but those of markdown itself, no address
    but the web's.
    """
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page.validateLink = lambda url: True
    for text in texts:
        made = page.render(make_bundle(hostile_run(text))["text/markdown"])
        tags = set(re.findall(r"<\s*/?\s*([a-zA-Z!?][a-zA-Z0-9]*)", made))
        allowed = "p h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s a img table thead tbody tr th td hr br"
        assert tags <= set(allowed.split()), (text, tags)
        assert all(
            re.match(r"https?:|mailto:", url, re.I) for url in re.findall(r'href="([^"]*)"', made)
        ), text
        assert all(
            url.startswith("data:image/png;base64,") for url in re.findall(r'src="([^"]*)"', made)
        ), text


def test_plain_text_has_no_control_characters(texts, hostile_run):
    for text in texts:
        made = make_bundle(hostile_run(text))["text/plain"]
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", made), text


def test_hidden_characters_of_names_and_arguments_are_written_out():
    assert show_hidden("rm \u202e txt") == "rm ⟨U+202E⟩ txt"
    assert show_hidden("a\u200bb") == "a⟨U+200B⟩b"


@pytest.mark.parametrize("hidden", ["\xad", "\u115f", "\u2028", "\u3164", "\uffa0", "\U000e0150"])
def test_characters_without_a_shape_are_written_out(hidden):
    assert show_hidden(f"a{hidden}b") == f"a⟨U+{ord(hidden):04X}⟩b"
    assert strip_hidden(f"a{hidden}b") == "ab"
    assert hidden not in escape_unprintable(f"a{hidden}b")


@pytest.mark.parametrize(
    "data", ["\ufe00\ufe01\ufe0e", "\u200c\u200d\u200c\u200d", "\ufe0f\u200d\ufe0f"]
)
def test_a_row_of_joiners_or_selectors_which_may_hide_data_is_written_out(data):
    assert show_hidden(f"a{data}b").endswith(f"⟨U+{ord(data[-1]):04X}⟩b")
    assert find_hidden(f"a = 'b{data}'") in {"U+FE01", "U+200D", "U+FE0F"}
    assert show_hidden("❤️‍🔥 👩‍👧 می‌خواهم") == "❤️‍🔥 👩‍👧 می‌خواهم"


def test_prose_keeps_direction_marks_but_not_overrides():
    assert show_prose("a\u202eb\u200f\x01") == "ab\u200f�"


def test_terminal_output_loses_escapes_and_shows_lines_as_left():
    assert show_output("\x1b[31mred\x1b[0m\n10%\r55%\r100%\r\n") == "red\n100%\n"
    assert (
        show_output("\x1b[1mbold\x1b(B\x1b[m, as tput ends it\x1b7\x1b=") == "bold, as tput ends it"
    )


@pytest.mark.parametrize(
    "between",
    ["<!-- -->", "<x>", "</p>", "<script>1</script>", "<custom-tag a='b'></custom-tag>", "&#x2d;"],
)
@pytest.mark.parametrize("key", ["sk-proj-AbCdEfGhIjKlMn0123", 'my "own" key & no other'])
def test_a_key_that_the_sanitiser_puts_together_is_not_shown(between, key, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", key)
    middle = key.index("-", 4) if between.startswith("&") and "-" in key else len(key) // 2
    cut = key[:middle] + between + key[middle + between.startswith("&") :]
    drawn = html.draw_html(nodes.Html(cut.replace('"', "&quot;").replace(" & ", " &amp; ")))
    assert key not in unescape(drawn)


def test_the_markup_of_a_table_passes_the_sanitiser():
    given = '<table style="border-collapse: collapse; color: red"><tr><td colspan="2" align="right">1</td></tr></table>'
    made = clean(given)
    assert 'style="border-collapse:collapse;color:red"' in made
    assert 'colspan="2"' in made


@pytest.mark.parametrize(
    ("attribute", "allowed"),
    [
        ('align="right"', True),
        ('align="CENTER"', True),
        ('align="justify; x"', False),
        ('align=""', False),
        ('scope="rowgroup"', True),
        ('scope="page"', False),
    ],
)
def test_only_known_values_of_align_and_scope_pass_the_sanitiser(attribute, allowed):
    made = clean(f"<table><tbody><tr><th {attribute}>1</th></tr></tbody></table>")
    assert (f"<th {attribute}>" in made) is allowed
    assert ("<th>" in made) is not allowed


def test_the_value_of_open_is_removed_by_the_sanitiser():
    assert clean('<details open="x">a</details>') == '<details open="">a</details>'


@pytest.mark.parametrize(
    "declaration",
    [
        "background:url(https://e.com/p.png)",
        "background:#fff fixed",
        "font:99px/1.2 serif",
        "font:12px/9 serif",
        "font:12px/1.2 url(x)",
        "overflow:visible",
        "overflow:auto visible",
    ],
)
def test_shorthands_take_no_more_than_the_properties_they_stand_for(declaration):
    assert clean(f'<p style="{declaration}">a</p>') == "<p>a</p>"


def test_links_of_foreign_html_open_in_a_new_page_without_a_referrer():
    assert (
        clean('<a href="https://e.com" class="x">a</a>')
        == '<a href="https://e.com" target="_blank" rel="noreferrer">a</a>'
    )


def test_our_own_colours_pass_our_sanitiser():
    for css in (
        theme.LINK,
        theme.syntax("keyword"),
        f"background:{theme.GROUND}",
        pre_style(),
        theme.CELL,
    ):
        assert f'style="{css}"' in clean(f'<span style="{css}">x</span>')


def test_a_recorded_number_may_have_any_size():
    context = {"text": "x", "tokens": 10**400, "cells": 10**400}
    done = {"done": 10**400, "total": 10**400 + 1}
    log = EventLog()
    log.append(e.State(kind="context", payload=context))
    log.append(e.Progress(call_id="a", data=done, fraction=0.5))
    assert "1000000000M tokens" in make_bundle(log)["text/plain"]


def test_half_a_character_in_a_record_does_not_stop_a_save(hostile_run):
    for form in make_bundle(hostile_run("half \ud800"), thoughts="show").values():
        assert form.encode()


@pytest.mark.parametrize("text", ["[" * 100_000, "[0," + "[" * 100_000, "\ud800", "[0]"])
@pytest.mark.parametrize("kind", ["picture", "approval"])
def test_news_of_a_call_that_cannot_be_read_are_left_out(kind, text):
    view = RunView()
    view.apply(e.Call(call_id="c", name="x"))
    view.apply(e.Delta(of=kind, block="c", text=text))
    card = view.call("c")
    assert card is not None
    assert (card.attachments, card.asked) == ((), None)


def test_no_carriage_return_hides_what_was_sent_with_the_prompt(begun):
    begun(e.State(kind="context", payload={"text": "secret = 1\rtotal = 2", "variables": {"a": 1}}))
    assert "secret = 1⟨U+000D⟩total = 2" in make_bundle(begun.log)["text/html"]


@pytest.mark.timeout(30)
def test_the_markdown_of_many_unfinished_images_takes_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    # without the parser of the library, which alone takes seconds
    assert markdown.disarmed("![" * 320_000) == "[" * 320_000


def test_an_image_with_its_data_inside_stays_an_image_in_markdown():
    image = "![a!b](data:image/png;base64,iVBOR)"
    assert markdown.draw(nodes.Prose(f"![ {image} ![c](http://x)")) == f"[ {image} [c](http://x)"
