"""Answers in a terminal: markdown as lines, each written once, however the text arrives."""

import random

import pytest

from agent_nb.view.draw import cells
from agent_nb.view.draw.cells import cell_width, fit, pad
from agent_nb.view.draw.terminal_blocks import Terminal
from agent_nb.view.draw.terminal_markdown import MarkdownWriter
from agent_nb.view.markdown import split
from agent_nb.view.markdown.split import parse

PLAIN = Terminal(40, styled=False)
STYLED = Terminal(40)
LONG = """# The result

Some **bold words that go on for a while** and `code`, a [link](https://a.org/b) and *more*.
A second line with $x_1$ and 5 * 3 * 2, then a_b_c and a price of $5.

1. one **x**
2. two
   - nested words that are long enough to be broken
   - b

| name | n |
|---|--:|
| Ada | 12 |
| 日本語 | 3.5 |

```python
def f(x):
    \"\"\"doc
    string\"\"\"

    return x + 1
```

> quoted
> text
"""


def draw_markdown(text, terminal):
    writer = MarkdownWriter(terminal)
    return [*writer.feed(text), *writer.close()]


def streamed(text, terminal, seed):
    writer, cuts = MarkdownWriter(terminal), random.Random(seed)
    lines, at = [], 0
    while at < len(text):
        step = cuts.choice((1, 1, 2, 5, 30))
        lines += writer.feed(text[at : at + step])
        at += step
    return [*lines, *writer.close()]


@pytest.mark.parametrize("terminal", [PLAIN, STYLED, Terminal(100)])
@pytest.mark.parametrize("seed", range(8))
def test_the_lines_do_not_depend_on_the_pieces(terminal, seed):
    assert streamed(LONG, terminal, seed) == draw_markdown(LONG, terminal)


@pytest.mark.parametrize("terminal", [Terminal(24, False), Terminal(24)])
@pytest.mark.parametrize(
    "text",
    [
        "Some words **and bold words that go on for some lines** and others, not bold",
        "Some words __and bold words that go on for some lines__ and others, not bold",
        "Some words ***bold and italic that go on for some lines*** and others",
        "A ~~struck text that goes on for more than one line~~ and others",
        "Use ``git log --oneline and words that go on for some lines`` to see it",
        "See \\(a + b + c + d + e + f + g + h + i + j\\) in these words",
        "Prices of $5 and $6 and then the formula $a * b * c * d * e * f$ in words",
        "[A [nested] link with words that go on](http://x.org) and more words",
        "- An item with **bold words that go on for some lines** x\n- Another",
        "Text:\n- An item below it with words that go on for lines\n- Another",
        "Text\n# A heading below it with words that go on\nMore",
        "Text\n> A quotation below it with words that go on\n\nMore",
        "    an indented line of code\n    another one, longer than a line\n\nMore",
    ],
)
def test_no_word_is_lost_or_repeated_as_the_text_grows(terminal, text):
    writer = MarkdownWriter(terminal)
    lines = [line for character in text for line in writer.feed(character)]
    assert [*lines, *writer.close()] == draw_markdown(text, terminal)


@pytest.mark.parametrize("line", ["From $5 to $6 words and", "From 3 * 4 to 5 * 6 and"])
def test_words_after_a_price_or_a_star_are_written_as_the_text_grows(line):
    assert MarkdownWriter(Terminal(24)).feed(f"{line} words and words") == [line]


def test_lines_are_written_while_the_text_grows():
    writer = MarkdownWriter(PLAIN)
    assert writer.feed("# Title\n\nOne line of forty columns is full of") == ["# Title"]
    assert writer.feed(" words, ") == ["", "One line of forty columns is full of"]
    assert writer.feed("**not yet a") == []
    assert writer.feed("\n\n```python\nx = 1\ny") == ["words, **not yet a", "", "```", "    x = 1"]
    assert writer.close() == ["    y", "```"]


def test_blocks_in_a_terminal():
    assert draw_markdown(LONG, PLAIN)[:2] == ["# The result", ""]
    lines = draw_markdown(LONG, STYLED)
    assert lines[0] == "\x1b[1mThe\x1b[0m \x1b[1mresult\x1b[0m"
    assert "    \x1b[35mreturn \x1b[0mx + \x1b[36m1\x1b[0m" in "\n".join(lines).replace(
        "\x1b[32m    \x1b[0m", "    "
    )
    assert "│ quoted text" in lines
    assert "   • b" in lines


def test_a_table_is_aligned_by_columns_of_the_screen():
    table = draw_markdown("| name | n |\n|---|--:|\n| Ada | 12 |\n| 日本語 | 3.5 |", PLAIN)
    assert table == ["name      n", "──────  ───", "Ada      12", "日本語  3.5"]
    narrow = draw_markdown("| a | b |\n|---|---|\n| " + "word " * 20 + "| x |", PLAIN)
    assert all(cell_width(line) <= 40 for line in narrow)


def test_a_link_shows_its_address():
    said = " ".join(draw_markdown("[here](https://a.org/x) and <https://b.org>", PLAIN))
    assert said == "here (https://a.org/x) and https://b.org"


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2Jgone",
        "\x1b]0;title\x07",
        "\x9b31mred",
        "&#27;[31m and &#x9b;31m",
        "&#x202e;abc",
        "`\x1b[1m`",
        "```\n\x1b]52;c;x\x07\n\x9b1m\n```",
        "[x](https://a.org/\x1b[1m&#x9b;)",
        "![\x1b[1m](data:x)",
        "| \x1b[1m |\n|---|\n| \x9d |",
        "$\x1b[1m$\n\n$$\n\x1b[1m\n$$",
    ],
)
def test_no_control_of_the_text_reaches_the_terminal(hostile):
    said = "\n".join(draw_markdown(hostile, PLAIN))
    assert all(c == "\n" or c.isprintable() for c in said), ascii(said)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("日本", 4),
        ("e\u0301", 1),
        ("👍🏽", 2),
        ("👩\u200d💻", 2),
        ("☀\ufe0f", 2),
        ("\u1112\u1161\u11ab", 2),
        ("\x1b[1mx\x1b[0m", 1),
    ],
)
def test_the_columns_of_a_text(text, width):
    assert cell_width(text) == width
    assert cell_width(pad(text, 9)) == 9


@pytest.mark.parametrize("word", ["word ", "*a ", "[", "x"])
def test_a_long_line_is_parsed_a_bounded_number_of_times(monkeypatch, word):
    parsed = []

    def count(source, *args, **options):
        parsed.append(len(source))
        return parse(source, *args, **options)

    monkeypatch.setattr(split, "parse", count)
    writer = MarkdownWriter(Terminal(80))
    text = word * (6_000 // len(word))
    for at in range(0, len(text), 3):
        writer.feed(text[at : at + 3])
    writer.close()
    assert sum(parsed) < 150 * len(text)


def test_emphases_without_end_in_one_another_are_shown_as_they_are():
    text = f"{'*' * 1500}a{'*' * 1500}"
    assert "".join(draw_markdown(text, Terminal(80))).replace("*", "") == "a"


def test_a_long_text_is_cut_with_few_looks_at_it(monkeypatch):
    looks = []
    monkeypatch.setattr(cells, "cell_width", lambda text: looks.append(text) or cell_width(text))
    assert cell_width(fit("漢" * 5000, 80)) == 79
    assert len(looks) < 30


def test_a_text_is_cut_to_columns():
    assert fit("日本語", 5) == "日本…"
    assert fit("日本語", 4) == "日…"
    assert fit("abc", 3) == "abc"


def test_a_long_word_is_cut_and_a_paragraph_fits():
    lines = draw_markdown("see " + "x" * 100 + " " + "日本語" * 20 + " end", PLAIN)
    assert all(cell_width(line) <= 40 for line in lines)
    assert "".join(lines).count("x") == 100


class Screen:
    def __init__(self, tty):
        self.isatty = lambda: tty


@pytest.mark.parametrize(
    ("tty", "env", "found"),
    [
        (False, {}, None),
        (True, {"TERM": "xterm"}, True),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (True, {}, False),
    ],
)
def test_what_a_terminal_can_show(monkeypatch, tty, env, found):
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr("sys.stdout", Screen(tty))
    terminal = Terminal.find()
    assert (terminal.styled if terminal else None) == found
    if terminal:
        assert terminal.width == 100
