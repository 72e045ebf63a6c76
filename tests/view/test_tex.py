"""Everyday mathematics is typeset, and TeX that would leave its box is shown as code.

Nothing else is taken for a formula.
"""

from __future__ import annotations

import re
from html import unescape

import ipywidgets as w
import pytest

from agent_nb.view import nodes
from agent_nb.view.draw import html, markdown
from agent_nb.view.markdown.stream import MarkdownStream, render
from agent_nb.view.markdown.tex import DEEPEST, TIGHT, find_refused, is_harmless
from agent_nb.view.widgets.kit import Kit
from agent_nb.view.widgets.slots import Stack, Static

ORDINARY = [
    r"x^2 + y^2 = z^2",
    r"E = mc^2",
    r"a_{i,j}^{(k)}",
    r"\frac{-b \pm \sqrt{b^2 - 4ac}}{2a}",
    r"\sqrt[3]{\dfrac{1}{1 + \tfrac{1}{x}}}",
    r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}",
    r"\prod_{p \text{ prime}} \frac{1}{1 - p^{-s}}",
    r"\int_{-\infty}^{\infty} e^{-x^2} \, dx = \sqrt{\pi}",
    r"\iint\limits_D f(x, y) \,\mathrm{d}x\,\mathrm{d}y",
    r"\oint_{\partial S} \vec{B} \cdot d\vec{\ell} = \mu_0 I",
    r"\int\!\!\!\int\!\!\!\int f",
    r"\lim_{h \to 0} \frac{f(x+h) - f(x)}{h}",
    r"\limsup_{n \rightarrow \infty} a_n \leq \sup_n a_n",
    r"\nabla \times \mathbf{E} = -\frac{\partial \mathbf{B}}{\partial t}",
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    r"\begin{bmatrix} 1 & \cdots & 0 \\ \vdots & \ddots & \vdots \\ 0 & \cdots & 1 \end{bmatrix}",
    r"\left[\begin{matrix}\cos \theta & - \sin \theta\\[4pt] \sin \theta & \cos \theta\end{matrix}\right]",
    r"\left[\begin{array}{cc|c} 1 & 2 & 3 \\ \hline 4 & 5 & 6 \end{array}\right]",
    r"f(x) = \begin{cases} x^2 & \text{if } x \ge 0 \\ -x & \text{otherwise} \end{cases}",
    r"\begin{aligned} a &= b + c \\ &= d \end{aligned}",
    r"\begin{align} \dot{x} &= \sigma(y - x) \\[1ex] \dot{y} &= x(\rho - z) - y \tag{1} \label{eq:lorenz} \end{align}",
    r"\begin{align*} 1 \\ [0, 1] \end{align*}",
    r"\begin{alignat}{2} x &= 1 &\quad y &= 2 \end{alignat}",
    r"\begin{gather} a \\ b \end{gather}",
    r"\begin{multline} a + \\ b \end{multline}",
    r"\begin{equation*} a = b \nonumber \end{equation*}",
    r"\begin{CD} A @>f>> B \\ @VVV @VVV \\ C @>>g> D \end{CD}",
    r"\alpha \beta \gamma \Gamma \varepsilon \vartheta \varphi \Omega \omega",
    r"A \cup B \cap C \setminus \emptyset \subseteq D \ni x \notin E",
    r"\forall \epsilon > 0 \; \exists \delta > 0 : |x - a| < \delta \implies |f(x) - L| < \epsilon",
    r"p \land q \lor \neg r \iff s \vdash t \models u",
    r"x \in \mathbb{R}^n, \quad f \in \mathcal{L}^2(\Omega), \qquad \mathfrak{g}, \mathscr{F}",
    r"\hat{\theta}_{\text{MLE}} = \arg\max_\theta \log \mathcal{L}(\theta)",
    r"\operatorname*{argmin}_{w} \lVert Xw - y \rVert_2^2 + \lambda \|w\|_1",
    r"\mathrm{softmax}(z)_i = \frac{e^{z_i}}{\sum_{j} e^{z_j}}",
    r"P(A \mid B) = \frac{P(B \mid A)\,P(A)}{P(B)}",
    r"\binom{n}{k} = \frac{n!}{k!\,(n-k)!}",
    r"\bar{x} \pm 1.96 \cdot \frac{s}{\sqrt{n}}",
    r"\mathbb{E}[X] = \int x \, dF(x), \ \operatorname{Var}(X)",
    r"\overline{z}, \underline{z}, \widehat{AB}, \widetilde{x}, \overrightarrow{AB}, \tilde{x}, \ddot{y}, \mathring{a}",
    r"\underbrace{1 + \cdots + 1}_{n \text{ times}} \overbrace{a}^{b}",
    r"\Bigl( \bigl\{ x \bigr\} \Bigr) \Biggl[ y \Biggr] \left\lfloor \frac{a}{b} \right\rfloor \lceil x \rceil \left. x \right|_0^1",
    r"\langle \psi | \hat{H} | \psi \rangle, \bra{a}\ket{b}, \braket{a|b}",
    r"A \xrightarrow{f} B \xleftarrow[g]{} C \hookrightarrow D \twoheadrightarrow E",
    r"a \equiv b \pmod{n}, \quad a \bmod b",
    r"\overset{!}{=} \underset{x}{\min} \stackrel{d}{\to} \sum_{\substack{i < n \\ i \ne j}} a_{ij}",
    r"\boxed{42}, \color{red}{x} + \textcolor{#3366ff}{y}",
    r"\cancel{x} + \bcancel{y} + \cancelto{0}{z}",
    r"\ce{2 H2 + O2 -> 2 H2O}, \ce{SO4^2-}, \pu{123 kJ mol-1}",
    r"\text{speed} = 10\,\text{km/h} = \text{10 cm} - 3\ \mathrm{mm}, 20\%, \$5, a\_b, \#1, \{x\}, R\&D",
    r"\displaystyle \sum_{k=0}^\infty \frac{x^k}{k!} \textstyle \int \scriptstyle a",
    r"{n \choose k} + {a \over b} + {x \atop y}",
    r"\phantom{-}1 \hphantom{xx} \vphantom{\frac{1}{2}} \mathstrut",
    r"a \hspace{1em} b \hspace*{0.5cm} c \mspace{18mu} d \quad e \  f ~ g \thinspace h",
    r"\boldsymbol{\beta} = (\mathbf{X}^\top \mathbf{X})^{-1} \mathbf{X}^{\mathsf{T}} \mathbf{y}",
    r"H(p, q) = -\sum_x p(x) \log_2 q(x) \geq 0",
    r"\mathcal{O}(n \log n), \Theta(n^2), o(1)",
    r"\det(A - \lambda I) = 0, \ker A, \dim V, \deg p, \gcd(a, b)",
    r"x = a_0 + \cfrac{1}{a_1 + \cfrac{1}{a_2 + \cdots}}",
    r"\frac{d}{dx}\left( \int_{a}^{x} f(t)\,dt \right) = f(x), f'(x), f''",
    r"\sin^2\theta + \cos^2\theta = 1, \quad \tanh x, \arctan 1 = \frac{\pi}{4}",
    r"\left(\frac{\partial^2 u}{\partial x^2}\right)_{\!y} = \Delta u, 90^\circ, \degree",
    r"\therefore a \not= b \ \because \ c \nsubseteq d, \ \checkmark",
    r"Q = \{ q \in \mathbb{Q} : q \lessgtr 0 \} \triangleq \varnothing",
]
PAINTERS = [
    r"\smash{\huge X}",
    r"\smash[b]{x}",
    r"\raise 9em {x}",
    r"\raise{9em}{x}",
    r"\lower 5em \hbox{x}",
    r"\raisebox{5em}{x}",
    r"\llap{Approve}",
    r"\rlap{Approve}",
    r"\clap{x}",
    r"\mathllap{x}",
    r"\mathrlap{x}",
    r"\mathclap{x}",
    r"\textllap{x}",
    r"\crampedllap{x}",
    r"\hspace{-20em}x",
    r"\hspace*{-1em}x",
    r"\hspace{ -1em}x",
    r"\hspace{99em}x",
    r"\hspace{5em}",
    r"\hspace -20em x",
    r"\hspace\x",
    r"\mspace{-360mu}x",
    r"\hskip -20em x",
    r"\mskip -360mu x",
    r"\kern-20em x",
    r"\mkern-360mu x",
    r"\kern20em",
    r"\moveleft 9em x",
    r"\moveright 9em x",
    r"\bbox[100px,red]{x}",
    r"\rule{100em}{100em}",
    r"\rule[-50em]{1em}{9em}",
    r"\Rule{9em}{9em}{9em}",
    r"\Space{-9em}{0em}{0em}",
    r"\begin{matrix} a \\[-20em] b \end{matrix}",
    r"a \\*[-20em] b",
    r"a \\ [ -20em ] b",
    r"a \\[99em] b",
    r"a \newline\kern-9em",
    r"\begin{array}{@{\hspace{-9em}}c} a \end{array}",
    r"\begin{array}{p{-9em}} a \end{array}",
    r"\begin{picture} x \end{picture}",
    r"\begin{empheq}[left=\kern-9em]{align} x \end{empheq}",
    r"\begin {smash} x \end{smash}",
    r"\genfrac{}{}{50em}{}{a}{b}",
    r"{a \above 50em b}",
    r"\overbracket[50em][50em]{x}",
    r"\skew{90}\hat{x}",
    r"\uproot{-900}",
    r"\leftroot{900}",
    r"\style{position:fixed}{x}",
    r"\class{jp-Dialog}{x}",
    r"\cssId{approve}{x}",
    r"\href{javascript:alert(1)}{x}",
    r"\href{https://e.com}{x}",
    r"\url{https://e.com}",
    r"\data{x=1}{y}",
    r"\unicode[99em]{x41}",
    r"\unicode{65}",
    r"\enclose{box}[padding=90em]{x}",
    r"\mmlToken{mo}{x}",
    r"\mathchoice{\kern-9em}{}{}{}",
    r"\require{html}",
    r"\def\x{\smash}\x{y}",
    r"\gdef\x{}\x",
    r"\let\x=\smash \x{y}",
    r"\newcommand{\x}{\smash}",
    r"\renewcommand{\frac}[2]{\raise9em{#1}}",
    r"\newenvironment{x}{\smash}{}",
    r"\DeclareMathOperator{\x}{\smash}",
    r"\csname smash\endcsname{x}",
    r"\toggle{a}{b}\endtoggle",
    r"\texttip{a}{b}",
    r"\mathtip{a}{b}",
    r"\huge x",
    r"\Huge{\Huge{\Huge x}}",
    r"\LARGE x",
    r"\text{\llap{x}}",
    r"\text{$\smash{x}$}",
    r"\ce{\smash{x}}",
    r"x^{\raise9em{y}}",
    r"\color{red;position:fixed}{x}",
    r"\color[rgb]{1,0,0}{x}",
    r"\definecolor{x}{rgb}{1,0,0}",
    r"\tag{\smash{\begin{matrix}a\\a\end{matrix}}}",
    r"\tag{Approve this call now}",
    r"\label{<b>}",
    r"\vcenter{x}",
    r"\setOptions{x}",
    r"\mathtoolsset{x}",
    r"\definitelyunknown",
    r"\Raise x",
    r"\smash",
    r"\frac1\smash2",
    r"\\\smash x",
    r"\ref{eq:1}",
    r"\eqref{eq:1}",
    r"\!" * (TIGHT + 1),
    r"\negthinspace" * 40,
    r"\negthickspace",
    r"{\{",
    r"x}{",
    "{" * (DEEPEST + 1) + "}" * (DEEPEST + 1),
]


class Strings:
    """The texts in which a typesetter looks for formulas.

    Like MathJax, it splits the page at every tag and leaves code out.
    """

    def __init__(self, page):
        shown = re.sub(r"<(code|pre)\b.*?</\1>", "<x>", page, flags=re.DOTALL)
        self.texts = [unescape(text) for text in re.split(r"<(?!br)[^>]*>", shown) if text]

    def formulas(self):
        """Return what MathJax would typeset, with JupyterLab's delimiters."""
        found = []
        for text in self.texts:
            at = 0
            while start := re.compile(
                r"\$\$?|\\\(|\\\[|\\begin\s*\{([^}]*)\}|\\[\\$]|\\(?:eq)?ref\s*\{[^}]*\}"
            ).search(text, at):
                at = self._end(text, start, found)
        return found

    def _end(self, text, start, found):
        opened = start[0]
        if opened in ("\\\\", "\\$"):
            return start.end()
        if opened.startswith(("\\ref", "\\eqref")):
            found.append(opened)
            return start.end()
        close = {"\\(": "\\)", "\\[": "\\]"}.get(
            opened, opened if opened[0] == "$" else f"\\end{{{start[1]}}}"
        )
        depth = 0
        for match in re.compile(rf"{re.escape(close)}|\\.|[{{}}]", re.DOTALL).finditer(
            text, start.end()
        ):
            if match[0] == close and depth <= 0:
                found.append(text[start.start() : match.end()])
                return match.end()
            depth += {"{": 1, "}": -1}.get(match[0], 0)
        return start.end()


def wrapped(formula):
    """Yield a formula in every kind of delimiter."""
    yield from (
        f"${formula}$",
        f"$${formula}$$",
        f"\\({formula}\\)",
        f"\\[{formula}\\]",
        f"$$\n{formula}\n$$",
        f"\\[\n{formula}\n\\]",
    )


def test_the_corpora_are_large():
    assert len(ORDINARY) >= 60
    assert len(PAINTERS) >= 90


@pytest.mark.parametrize("formula", ORDINARY)
def test_ordinary_mathematics_is_typeset(formula):
    assert is_harmless(formula)
    page = render(f"$$\n{formula}\n$$\n")
    assert Strings(page).formulas() == [f"$$\n{formula}\n$$"]
    if "$" not in formula and len(formula) < 300:
        assert Strings(render(f"so ${formula}$ holds")).formulas() == [f"${formula}$"]


@pytest.mark.parametrize("formula", PAINTERS)
def test_what_leaves_its_box_is_shown_as_code(formula):
    assert not is_harmless(formula)
    for source in wrapped(formula):
        page = render(source)
        assert [f for f in Strings(page).formulas() if not is_harmless(f)] == [], source
        shown = "".join(unescape(re.sub("<[^>]*>", "", page)).split())
        assert "".join(formula.replace("\\\\", "").split()) in shown.replace("\\\\", ""), (
            "nothing of it is hidden"
        )


@pytest.mark.few(40)
@pytest.mark.parametrize("painter", [r"\smash{x}", r"\raise 9em {x}", r"\llap{x}"])
@pytest.mark.parametrize(
    "trick",
    [
        r"\\(@\\)",
        r"\\\\(@\\\\)",
        r"&#36;@&#36;",
        r"&dollar;@&dollar;",
        r"\$@\$",
        r"$a{$ @} $b$",
        r"$a{$ @ }$",
        r"$a$$@$b$",
        r"$$a{$$ @ $$}$$",
        r"\begin{align}@\end{align}",
        r"so \begin{align}@\end{align}",
        r"\begin{foo}@\end{foo}",
        "\\begin{align}\n@\n\\end{align}",
        "*a* $@$ *b*",
        "$x$ **$@$**",
        "[$@$](https://e.com)",
        "| a |\n|---|\n| $@$ |",
        "> $@$",
        "- $@$\n- $$@$$",
        "# $@$",
        "$a\n@$",
        "$$a\n\n@$$",
        "`$`@`$`",
        "$`@`$",
        "$a<!-- -->@$",
        "$<b>@</b>$",
        "![$@$](x)",
        "![$@$](data:image/png;base64,AA==)",
        "$%\n@$",
        r"$\text{$@$}$",
        r"\(a\[@\]\)",
        "$$@$",
        "$@$$",
        r"\[@\)",
        "\\[\n@\n$$",
        "$\u200b@$",
        "$a\\\n@$",
        "\\begin{align}\na\n\n@\\end{align}",
        "$\\begin{matrix}a$ @ $\\end{matrix}$",
    ],
)
def test_no_trick_of_markdown_hands_a_painter_to_a_typesetter(trick, painter):
    source = trick.replace("@", painter)
    stream = MarkdownStream()
    pages = [render(source)]
    for char in source:
        stream.feed(char)
        pages.append(stream.html())
    assert [f for page in pages for f in Strings(page).formulas() if not is_harmless(f)] == []


def test_prices_and_escaped_dollars_are_not_formulas():
    for source in (
        "It is $5 or $6.",
        r"It is \$5 or \$6.",
        "from $5 to $7 and $8",
        r"a \\(b\\) c",
        "&#36;5 and &#36;6",
    ):
        assert Strings(render(source)).formulas() == [], source


def test_an_environment_on_its_own_lines_is_a_formula():
    source = "So:\n\n\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}\n\nThat is all."
    assert Strings(render(source)).formulas() == [
        "\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}"
    ]


@pytest.mark.few(35)
@pytest.mark.parametrize("formula", PAINTERS)
def test_painters_are_code_or_broken_up_in_the_markdown_form(formula):
    for source in (
        *wrapped(formula),
        f"a \\\\({formula}\\\\) b",
        f"$a{{$ {formula}}} $b$",
        f"$ {formula} $",
    ):
        made = "\n\n".join(markdown.prose(nodes.Prose(source)))
        plain = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", made, flags=re.DOTALL)
        left = [
            place for place in find_refused(plain) if plain[place + 1] not in (markdown.ZERO, "*")
        ]
        assert left == [], made
        assert "\\`" not in made, "an escaped mark would open nothing"


@pytest.mark.few(35)
@pytest.mark.parametrize("formula", [*PAINTERS, "x^{x^{x^{x^x}}}"])
def test_names_prompts_and_lines_with_a_formula_are_code_in_markdown(
    formula,
):
    """Whole or cut, bold or in a table: some pages are typeset behind markdown's back."""
    for text in wrapped(formula):
        for said in (text, text[: len(text) // 2 + 1]):
            drawn = (
                markdown.inline(nodes.T(said, bold=True)),
                *markdown.table(nodes.Table((said,), ())),
            )
            for made in drawn if "\\" in said else ():
                assert "\\" not in re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", made).replace(
                    "\\|", ""
                ), made


def test_prices_are_not_code_in_the_markdown_form():
    assert markdown.inline(nodes.T("from $5 to $7")) == r"from \$5 to \$7"


def test_ordinary_mathematics_is_unchanged_in_the_markdown_form():
    for formula in ORDINARY:
        assert markdown.prose(nodes.Prose(f"$${formula}$$")) == [f"$${formula}$$"]


def test_paths_are_unchanged_where_there_is_no_mathematics():
    assert markdown.prose(nodes.Prose(r"in C:\new\table")) == [r"in C:\new\table"]


def test_only_an_answer_is_typeset_in_the_live_view():
    row = nodes.Row((nodes.T(r"$\smash{x}$ and $y$"),))
    foreign = nodes.Html(r"<p class='mathjax_process'>$\smash{x}$</p>")
    answer = nodes.Prose("$z$")
    kinds = {}
    for node in (row, foreign, answer):
        slot = Static(Kit(lambda _: None, {}))
        slot.update((row, node))
        kinds[type(node)] = slot.widgets[0]
    assert type(kinds[nodes.Row]) is type(kinds[nodes.Html]) is w.HTML
    assert type(kinds[nodes.Prose]) is w.HTMLMath
    value = kinds[nodes.Prose].value
    assert value.startswith(f"<div {html.NO_MATH}>")
    assert value.index(html.MATH) > value.index("smash")


def test_text_that_gets_a_formula_later_is_typeset_from_then_on():
    kit = Kit(lambda _: None, {})
    slot = Stack(kit)
    kinds = []
    for text in ("plain words", "energy $E=mc^2$", "energy $E=mc^2$ here", "plain words"):
        slot.show(nodes.Stack((nodes.Prose(text),)))
        kinds.append(slot.widgets[0].children[0])
    assert type(kinds[0]) is w.HTML
    assert type(kinds[1]) is w.HTMLMath
    assert kinds[1] is kinds[2] is kinds[3]  # a new widget would flicker
    assert kit._retired == kinds[:1]
