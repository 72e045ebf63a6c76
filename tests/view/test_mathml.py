"""TeX as MathML: formulas are readable without a front end, hostile ones become text."""

import re
from html.parser import HTMLParser

import pytest

from agent_nb.view import values
from agent_nb.view.draw import html
from agent_nb.view.markdown import mathml
from agent_nb.view.markdown.mathml import Formulas, formula
from agent_nb.view.markdown.stream import render
from agent_nb.view.nodes import Prose
from agent_nb.view.state.text import Text


class Elements(HTMLParser):
    """The elements of a fragment with their attributes, and its text."""

    def __init__(self, fragment):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(fragment)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize(
    ("source", "tags", "words"),
    [
        (r"$E = mc^2$", {"msup", "mi", "mo"}, "E=mc2"),
        (r"$$\frac{a}{b}$$", {"mfrac"}, "ab"),
        (r"\(\sum_{i=1}^n x_i\)", {"msubsup", "msub"}, "∑i=1nxi"),
        (r"\[\begin{pmatrix}1&2\\3&4\end{pmatrix}\]", {"mtable", "mtr", "mtd"}, "(1234)"),
        (
            r"$\int_0^\infty e^{-x^2}\,dx = \tfrac{\sqrt\pi}{2}$",
            {"msqrt", "mspace"},
            "∫0∞e−x2dx=π2",
        ),
        (r"$x < y \text{ and } 50\%$", {"mtext"}, "x<y and 50%"),
    ],
)
def test_a_formula_becomes_mathml(source, tags, words):
    seen = Elements(formula(source))
    assert seen.found[0][0] == "math"
    assert tags <= {tag for tag, _ in seen.found}
    assert seen.text.replace("\xa0", " ") == words


def test_a_formula_keeps_its_tex_and_says_whether_it_stands_alone():
    (_, inline), *_ = Elements(formula(r"$a < b$")).found
    assert inline == {"display": "inline", "alttext": "a < b"}
    assert Elements(formula("$$\nx\n$$")).found[0][1] == {"display": "block", "alttext": "x"}


HOSTILE = [
    r"\text{<script>alert(1)</script>}",
    r"\text{&lt;script&gt;alert(1)&lt;/script&gt;}",
    r"\href{javascript:alert(1)}{x}",
    r"\style{position:fixed}{x}",
    r"\class{jp-Dialog}{x}",
    r"\cssId{here}{x}",
    r"\unicode{60}\unicode{115}",
    r"\color{white}{x}",
    r"\smash{x}\hspace{-30em}y",
    r"\rule{100em}{100em}",
    r"\raise 90em x",
    r"\llap{x}",
    r"\kern-99em x",
    r"\mathchoice{a}{b}{c}{d}",
    r"\operatorname{<img src=x onerror=alert(1)>}",
    r"\require{html}",
    "\u202etxet",
    r"\begin{array}{<b>}1\end{array}",
    r"\mmlToken{mi}[onclick=alert(1)]{x}",
    r"\phantom{\text{<b>}}",
]


@pytest.mark.parametrize("tex", HOSTILE)
def test_a_hostile_formula_becomes_plain_text(tex):
    seen = Elements(formula(f"${tex}$"))
    assert {tag for tag, _ in seen.found} <= mathml.TAGS | {"code"}
    for tag, attributes in seen.found:
        for name, value in attributes.items():
            assert name in {*mathml.ATTRIBUTES, "display", "alttext"} | (
                {"width"} if tag == "mspace" else set()
            )
            assert name == "alttext" or not re.search(r"-\d|\d\d(?:em|px|pt|ex)", value), (
                name,
                value,
            )
    assert "\u202e" not in formula(f"${tex}$")


@pytest.mark.parametrize(
    "tex",
    [
        "x" * 5000,
        "{" * 3000 + "x" + "}" * 3000,
        r"\sqrt" * 900,
        "x^" * 500,
        r"\left(" * 900,
        r"\begin{matrix}" * 200,
        r"\newcommand{\a}{\a\a}\a",
        r"\def\a{b}\a",
        r"\let\a\b",
        r"\frac{a",
    ],
)
def test_a_formula_that_cannot_be_converted_is_shown_as_code(tex):
    made = formula(f"${tex}$")
    assert made.startswith(("<code>", "<math"))
    assert tex in Elements(made).text or "alttext" in made


def test_formulas_of_a_text_keep_their_places():
    made = render(
        "Let $a_1$ be *small*:\n\n$$\\frac{1}{2}$$\n\n- costs 5$ and 6$\n- `$no$`\n", Formulas()
    )
    assert made.count("<math") == 2
    assert "$a_1$" not in made
    assert made.index("<em>small</em>") < made.index('display="block"')
    assert "$no$" in Elements(made).text
    assert "costs 5$ and 6$" in Elements(made).text


def test_without_formulas_a_text_keeps_its_tex_for_the_front_end():
    assert "$a_1$" in render("Let $a_1$ be")
    assert "<math" not in html.draw_html(Prose("Let $a_1$ be"))


def test_the_author_of_a_text_cannot_forge_the_mark_of_a_formula():
    formulas = Formulas()
    made = render("m0m 0m0m $x$ deadbeefdeadbeefm0m", formulas)
    assert made.count("<math") == 1
    assert "deadbeefdeadbeefm0m" in made


def test_a_standalone_page_has_the_formulas_of_grown_texts_typeset():
    grown = Text()
    grown.append("It is $x^2$.")
    assert "<msup>" in html.draw_html(Prose(grown), typeset=True)
    assert "<msup>" in html.draw_html(Prose("It is $x^2$."), typeset=True)
    assert "$x^2$" in html.draw_html(Prose(grown))


@pytest.mark.parametrize(
    ("tex", "tag"),
    [
        (r"$\displaystyle \frac{a}{b}$", "<mfrac>"),
        (r"\begin{align} a &= b \\" + "\n\n" + r"c &= d \end{align}", "<mtable"),
        ("$" + " + ".join(f"x_{{{n}}}" for n in range(200)) + "$", "<msub>"),
        (r"$$\frac{a}{b}$$", "<mfrac>"),
        (r"\(\frac{a}{b}\)", "<mfrac>"),
        (r"the half $\frac{1}{2}$ of $x$", "<mfrac>"),
    ],
)
def test_tex_in_a_value_is_typeset(tex, tag):
    (node,) = values.value_nodes("", {"text/latex": tex, "text/plain": "words"})
    made = html.draw_html(node, typeset=True)
    assert tag in made
    assert "$" not in Elements(made).text


@pytest.mark.parametrize("tex", ["", "$", "$$", "no math at all", 5, None])
def test_a_value_that_is_not_one_formula_is_shown_as_text(tex):
    made = "".join(html.draw_html(node) for node in values.value_nodes("x", {"text/latex": tex}))
    assert made
    assert tex != "no math at all" or Elements(made).text.strip() == tex
