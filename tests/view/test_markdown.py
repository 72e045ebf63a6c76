"""Incremental markdown: any split yields the whole, in linear time, with a sensible end."""

from __future__ import annotations

import random
import re
from html import unescape

import pytest
from helpers.examples import count_examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb.view import nodes
from agent_nb.view.draw import html
from agent_nb.view.markdown import split as mdsplit
from agent_nb.view.markdown.highlight import highlight
from agent_nb.view.markdown.html import parser, tokens_html
from agent_nb.view.markdown.open_end import complete_source
from agent_nb.view.markdown.sanitize import clean
from agent_nb.view.markdown.stream import MarkdownStream, drop_spare_tags, render, stream_of
from agent_nb.view.markdown.stylesheet import compact
from agent_nb.view.state.text import Text, in_fence

SAMPLES = {
    "headings": "# One\ntext\n## Two\n\nSetext\n===\nMore\n---\nend",
    "lists": "- a\n- b\n\n  more\n- c\n1. one\n2. two\n\n\n* x\n+ y\n\n7) seven\n8) eight\nlazy\n\n    code",
    "tables": "text\n| a | b |\n|---|--:|\n| 1 | 2 |\n| `x` | **y**\n\nafter | no\n|-|\n",
    "code": 'a\n```python\ndef f():\n    return "x"\n\n```\n~~~\nraw ```\n~~~\n```\nopen to the end\n',
    "quotes": "> q\nlazy\n> more\n>\n> - in\n>   list\n\n> two",
    "math": "$a_1*b*c$ and $5 or $6\n\n$$\na\n- b\n$$\n\n\\(x*y*\\) \\[\nz\n\\]\n\n$$ open\n\n- no math\n",
    "links": "[foo] and [bar][foo] ![i](https://x/y.png) <https://a.b>\n\n- [foo]\n\n[foo]: https://e.com 'T'\n\n[foo] again",
    "inline": "a **b *c* d** ~~e~~ `f` `` g`h `` \\* &amp; <b>no</b>  \nbreak\\\nbreak",
    "rules": "a\n\n---\n***\nb\n___\n",
    "unicode": "Grüße 👩‍👩‍👧 \u2028 x\n\n中文 **粗体**\n",
    "crlf": "a\r\nb\r\n\r\n- c\r\n- d\r\n",
}


def whole(text: str) -> str:
    env: dict[str, object] = {}
    return drop_spare_tags(clean(tokens_html(parser().parse(text, env), env)))


def streamed(pieces: list[str], *, look: bool = True) -> str:
    stream = MarkdownStream()
    for piece in pieces:
        stream.feed(piece)
        if look:
            stream.tail(caret=True)
    stream.close()
    return "".join(stream.frozen)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_split_yields_the_whole(name, every_split):
    expected = render(SAMPLES[name])
    for pieces in every_split(SAMPLES[name]):
        assert streamed(list(pieces)) == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_one_character_at_a_time_yields_the_whole(name):
    assert streamed(list(SAMPLES[name])) == render(SAMPLES[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_parts_equal_the_text_parsed_at_once(name):
    text = SAMPLES[name].replace("\r", "")
    assert render(text) == whole(text)


LINES = st.sampled_from(
    [
        "- a\n",
        "1. b\n",
        "  c\n",
        "\n",
        "\n\n",
        "> d\n",
        "```\n",
        "~~~ py\n",
        "| a | b |\n",
        "|---|---|\n",
        "# h\n",
        "---\n",
        "===\n",
        "text\n",
        "    code\n",
        "$$\n",
        "[x]: https://a.b\n",
        "[x] *y* `z`\n",
        "**",
        "- ",
        "\\[\n",
        "\\]\n",
        "* * *\n",
        "<div>\n",
        "+ +\n",
    ]
)


@given(st.lists(LINES, max_size=25), st.integers(0, 1_000_000))
@settings(max_examples=count_examples(150), deadline=None)
def test_any_lines_in_any_pieces_yield_the_whole(lines, seed):
    text, chance = "".join(lines), random.Random(seed)
    pieces, at = [], 0
    while at < len(text):
        size = chance.choice((1, 2, 3, 5, 8, 40))
        pieces.append(text[at : at + size])
        at += size
    assert streamed(pieces) == render(text) == whole(text)


LONG = {
    "list": "".join(f"- item {i} with **words**\n" for i in range(300)),
    "numbers": "".join("1. item\n\n   more\n" for _ in range(150)),
    "code": "```python\n" + "x = f(1) + 'a'\n" * 500 + "```\n",
    "table": "| a | b |\n|---|---|\n" + "| x | y |\n" * 300,
    "paragraph": "word " * 8_000,
    "quote": "> quoted line\n" * 900,
    "line": "x" * 30_000,
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", LONG)
def test_long_blocks_are_cut_at_the_same_places_however_they_arrive(name):
    text = LONG[name]
    expected = render(text)
    for size in (37, 401, 5_000):
        assert (
            streamed([text[i : i + size] for i in range(0, len(text), size)], look=size > 100)
            == expected
        )


@pytest.mark.parametrize("name", LONG)
def test_the_open_end_stays_short(name):
    stream = MarkdownStream()
    for i in range(0, len(LONG[name]), 500):
        stream.feed(LONG[name][i : i + 500])
        stream.advance()
        assert len(stream._splitter.rest) < 13_000


def test_a_cut_ordered_list_continues_its_numbers():
    html = render("".join("1. item\n" for _ in range(70)))
    assert [f'start="{n}"' in html for n in (31, 61)] == [True, True]


def test_parsing_is_linear_in_the_text(monkeypatch):
    parsed = []
    real = mdsplit.parse
    monkeypatch.setattr(
        mdsplit,
        "parse",
        lambda source, refs, **o: parsed.append(len(source)) or real(source, refs, **o),
    )

    def work(times: int) -> int:
        parsed.clear()
        stream = MarkdownStream()
        for _ in range(times):
            stream.feed("A paragraph of some words.\n\n- a list\n- of two\n\n")
            stream.advance()
        stream.close()
        return sum(parsed)

    assert work(400) < 2.3 * work(200)


def test_finished_parts_do_not_change_while_the_text_grows():
    stream = MarkdownStream()
    kept: list[str] = []
    for char in "".join(v for k, v in SAMPLES.items() if k != "links"):
        stream.feed(char)
        stream.advance()
        assert stream.frozen[: len(kept)] == kept
        kept = list(stream.frozen)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("text\n-", "text\n"),
        ("text\n==", "text\n"),
        ("a **bold", "a **bold**"),
        ("a **bold*", "a **bold**"),
        ("a `code", "a `code`"),
        ("see [the docs](https://exa", "see the docs"),
        ("see [the do", "see the do"),
        ("1", ""),
        ("```py\nx = [", "```py\nx = ["),
        ("| a | b |", "| a | b |\n|---|---|"),
        ("| a | b |\n|--", "| a | b |\n|---|---|"),
        ("a *lean", "a *lean*"),
    ],
)
def test_the_open_end_is_completed_for_display(source, shown):
    assert complete_source(source) == shown


def test_only_running_text_ends_in_a_caret():
    assert complete_source("some text", caret=True) == "some text▍"
    assert "▍" not in complete_source("```\ncode", caret=True)
    assert "▍" not in complete_source("| a | b", caret=True)


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        ("```\na", True),
        ("```\na\n```", False),
        ("~~~\n```", True),
        ("````\n```", True),
        ("a", False),
    ],
)
def test_whether_a_source_ends_in_a_fence(source, inside):
    assert in_fence(source) is inside


def test_remote_images_become_links_and_raster_data_stays():
    assert "<img" not in render("![x](https://e.com/p.png)")
    assert 'href="https://e.com/p.png"' in render("![x](https://e.com/p.png)")
    assert '<img src="data:image/png;base64,AAAA"' in render("![x](data:image/png;base64,AAAA)")


def test_formulas_stay_as_they_were_written():
    html = render("Let $a_1 * b * c$ and\n\n$$\nx_1 \\\\ y\n$$\n")
    assert "$a_1 * b * c$" in html
    assert "$$\nx_1 \\\\ y\n$$" in html


def test_a_table_repeats_no_line_in_its_cells_and_has_no_optional_end_tags():
    html = render("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n- c\n\n  d\n- e\n")
    assert html.count("border-bottom") == 3
    assert "\n" not in html
    assert not re.search("</(?:li|t[dhr]|thead|tbody)>", html)


@pytest.mark.parametrize(("letters", "breaks"), [(60, 0), (61, 1)])
def test_a_very_long_word_breaks_in_its_cell_of_a_table(letters, breaks):
    word = "x" * letters
    assert render(f"{word}\n\n| a | b |\n|---|---|\n| {word} y | z |\n").count("anywhere") == breaks
    table = nodes.Table(("a", "b"), ((f"{word} y", "z"),))
    assert html.DRAW[nodes.Table](table).count("anywhere") == breaks


def test_a_very_long_word_takes_a_part_of_the_width_of_its_table():
    word = "x" * 3000
    compared = nodes.Table(("", "recorded", "now"), (("≠", "a short line", word),), sides=True)
    draw = html.DRAW[nodes.Table]
    tables = (render(f"| a | b |\n|---|---|\n| {word} | z |\n"), draw(compared))
    for drawn in (*tables, draw(nodes.Table(("a", "b"), ((word, "z"),)))):
        assert re.search(rf'max-width:560px[^>]*">{word}', drawn)


def test_a_very_long_word_leaves_room_for_a_cut_column_beside_it():
    drawn = html.DRAW[nodes.Table](nodes.Table(("a", "b"), (("x" * 400, "y"),), cut=(1,)))
    assert re.findall(r"width:(\d+)px", drawn.partition("<tbody>")[2])[-1] == "446"


def test_what_reads_like_an_end_tag_in_a_text_or_in_code_stays():
    html = render('`</td>` a</li>b [c](https://e.com "</tr>")\n\n    </li>\n    x\n')
    assert unescape(html).count("</li>") == 2
    assert 'title="&lt;/tr&gt;"' in html
    assert "&lt;/td&gt;" in html
    assert "&lt;/li&gt;\nx" in html


def test_text_of_a_script_from_the_right_has_its_own_direction():
    arabic = "\u0645\u0631\u062d\u0628\u0627"
    source = (
        f"{arabic}, x.\n\nplain\n\n- {arabic} 1\n- plain\n\n| a | {arabic} |\n|---|---|\n| b | c |"
    )
    shown = render(source)
    tags = re.findall(r"<(\w+)[^>]*unicode-bidi:plaintext", shown)
    assert (tags, render("plain\n\n- one").count("unicode-bidi")) == (["p", "li", "th"], 0)
    assert '<li style="text-align:left;unicode-bidi:plaintext">' in shown
    assert compact(shown).count("unicode-bidi:plaintext") == 3


def test_prices_are_not_formulas():
    assert render("from $5 to $6").count("<span>$</span>") == 2


def test_code_is_coloured_and_escaped():
    html = render("```python\nif a < b: pass\n```\n```nosuchlanguage\n<b>\n```\n")
    assert 'color:color-mix(in srgb,rgb(150,90,220) 72%,currentColor)">if</span>' in html.replace(
        " </span>", "</span>"
    )
    assert "a &lt; b" in html
    assert "&lt;b&gt;" in html


def test_code_so_long_that_a_lexer_may_take_seconds_is_plain():
    code = "if (a) b();\n" * 10
    assert "<span" in highlight(code, "c")
    assert highlight("\n" * 50_000 + code, "c").endswith(code)


def test_a_page_of_a_growing_text_shows_all_of_it():
    source = "One.\n\nTwo.\n\nThree is `code`.\n\nFour."
    words = ("One.", "Two.", "Three", "Four.")
    for size in range(1, len(source) + 1):
        text = Text("")
        for start in range(0, len(source), size):
            text.append(source[start : start + size])
            shown = html.prose(nodes.Prose(text, open=True))
            assert [w for w in words if w in shown] == [w for w in words if w in str(text)]


def test_a_growing_text_keeps_its_stream():
    text = Text("# A\n\nb")
    first = stream_of(text, closed=False)
    text.append("\n\nc")
    assert stream_of(text, closed=False) is first
    assert "".join(stream_of(text, closed=True).frozen) == render("# A\n\nb\n\nc")


FORMULAS = r"""The roots of $ax^2 + bx + c = 0$ are

$$x_{1,2} = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a},$$

and with \(a = 1\) they cost $5 or $6, set $HOME to it. **Bold $a*b$** and $$z^2$$ inline \[
q_1
\]

\[
\int w
\]

| $a_1$ | b |
|---|---|
| \(x^2\) | $y_2$ |

- item $x_1$
- `code $x` and $\alpha$ end

done"""


def seen(html: str) -> str:
    """Return what is read outside of code."""
    return unescape(
        re.sub(r"<[^>]+>", "", re.sub(r"<code.*?</code>|<pre.*?</pre>", "", html, flags=re.DOTALL))
    )


def test_no_formula_is_ever_half_raw_while_the_text_grows():
    for end in range(1, len(FORMULAS) + 1):
        stream = MarkdownStream()
        stream.feed(FORMULAS[:end])
        text = seen(stream.tail() + stream.untypeset_html(0))
        assert not re.search(r"\\|\^|_|\$(?!5|6|HOME)|[\[\]]", text), (FORMULAS[:end][-30:], text)


def test_a_finished_formula_is_left_to_the_front_end_until_then_code():
    stream = MarkdownStream()
    stream.feed("Let $x^2$ be.\n\n$$\ny_1\n$$\n\nMore")
    stream.advance()
    assert [piece for piece in stream.frozen if "$" in piece] == stream.frozen
    assert re.findall(r"<code[^>]*>(.*?)</code>", stream.untypeset_html(0)) == ["x^2", "y_1"]
    assert "$" not in stream.untypeset_html(0)


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("a $", "a"),
        ("a $x", "a x"),
        ("a $x$", "a x"),
        ("a $5", "a $5"),
        ("a $x + y$ b", "a x + y b"),
        ("a \\", "a"),
        ("a \\(", "a"),
        ("a \\(x", "a x"),
        ("a \\(x\\", "a x"),
        ("$$", ""),
        ("$$\nx", "x"),
        ("$$x$", "x"),
        ("set $HOME to", "set $HOME to"),
        ("`a $x", "a $x"),
        ("a \\\\", "a \\"),
        ("x $" + "a b c " * 20, "x $" + "a b c " * 19 + "a b c"),
    ],
)
def test_how_an_unfinished_formula_reads(source, reads):
    stream = MarkdownStream()
    stream.feed(source)
    assert unescape(re.sub(r"<[^>]+>", "", stream.tail())).strip() == reads


@pytest.mark.parametrize(
    "block", ["A paragraph.", "# A heading", "$$\nx\n$$", "| a |\n|---|\n| b |"]
)
def test_an_empty_line_finishes_a_block_that_it_ends(block):
    stream = MarkdownStream()
    stream.feed(f"{block}\n\nNext")
    stream.advance()
    assert len(stream.frozen) == 1
    assert stream.tail() == render("Next")


@pytest.mark.parametrize("step", [0, 7, 100])
@pytest.mark.parametrize(
    "source",
    [
        "- item\n" + "  - below it\n" * 60,
        "- item\n\n  ```\n" + "  code = 1\n" * 60 + "  ```\n",
        "1. one item\n" + "   word\n" * 60,
        "\n" * 900,
        "".join(f"[{n}]: http://x.org/{n}\n" for n in range(40)),
    ],
)
def test_a_block_larger_than_the_window_is_not_lost(monkeypatch, source, step):
    monkeypatch.setattr(mdsplit, "WINDOW", 300)
    text = f"Before [1].\n\n{source}\nThe last paragraph."
    splitter, segments = mdsplit.Splitter(), []
    for at in range(0, len(text), step or len(text)):
        splitter.feed(text[at : at + (step or len(text))])
        segments += splitter.finished()
    segments += splitter.finished(final=True)
    drawn = "".join(segment.source for segment in segments)
    assert drawn.split() == text.split() or "]: " in source
    assert drawn.endswith("The last paragraph.")
    whole = mdsplit.Splitter()
    whole.feed(text)
    assert [s.source for s in segments] == [s.source for s in whole.finished(final=True)]


@pytest.mark.parametrize("label", ["two words", "two\nwords", "two  words", " TWO\twords "])
def test_a_link_takes_a_later_definition_however_its_label_is_written(label):
    text = f"[{label}] x\n\nThen.\n\n[two words]: http://x.org"
    assert "href" in render(text)
    assert streamed(list(text)) == render(text)


@pytest.mark.parametrize(
    ("block", "end"),
    [("```python\n" + "x = 1\n" * 100, "```\n\n"), ("| a |\n|---|\n" + "| 1 |\n" * 100, "\n")],
)
def test_no_letter_behind_a_block_of_several_pages_is_lost(block, end):
    pieces = [block, f"{end}The next paragraph begins here\nand", " goes on."]
    assert "The next paragraph begins here\nand goes on." in streamed(pieces)


@pytest.mark.parametrize("block", ["- a", "    code", "```\na"])
def test_a_block_that_can_continue_after_an_empty_line_stays_open(block):
    stream = MarkdownStream()
    stream.feed(f"{block}\n\n")
    stream.advance()
    assert stream.frozen == []


@pytest.mark.parametrize(
    ("source", "width"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2 |", "fits"),
        (f"| a | b |\n|---|---|\n| 1 | {'word ' * 40}|", "fits"),  # its lines break between words
        (f"| a | b |\n|---|---|\n| 1 | {'语' * 90} |", "fits"),
        (f"| a | b |\n|---|---|\n| 1 | {'w' * 40} |", "may scroll"),
        (f"| a | b |\n|---|---|\n| {'v' * 40} | {'w' * 40} |", "scrolls"),
        ("$$x$$", "fits"),
        (f"$$\n{'x + ' * 10}y\n$$", "may scroll"),
        (f"$$\n{'x + ' * 20}y\n$$", "scrolls"),
        # long as a source, short as a formula
        (r"$$\varepsilon_{t} \sim \mathcal{N}(\mu, \sigma^{2}), \qquad t \in \mathbb{Z}$$", "fits"),
    ],
)
def test_a_wide_block_scrolls_within_the_page_and_has_an_edge(source, width):
    drawn = render(source)
    assert ("overflow:auto hidden" in drawn) == (width != "fits" or "$" in source)
    assert drawn.count("<div") == drawn.count("</div>")
    assert ("border-right:1px" in drawn) == (width == "scrolls")
    assert ("box-sizing:border-box" in drawn) == (width == "scrolls")  # the width includes the edge
    assert ('tabindex="0"' in drawn) == (width != "fits")


def test_a_long_line_of_code_scrolls_and_is_not_broken():
    (tag,) = re.findall("<pre [^>]*>", render(f"```\n{'word ' * 40}\n```"))
    assert "overflow:auto;white-space:pre" in tag
    assert 'tabindex="0"' in tag


def test_a_live_block_of_code_has_its_style_from_the_sheet():
    for code in ("short", "word " * 40):
        assert "<pre style" in (drawn := render(f"```\n{code}\n```"))
        assert "<pre style" not in compact(drawn)


def test_an_empty_header_of_a_foreign_table_is_a_plain_cell():
    table = '<table><tr><th class="x" scope="col">&nbsp;</th><th></th><th>a</th></tr></table>'
    assert clean(table).count("<td") == 2
    assert "<th>a</th>" in clean(table)
