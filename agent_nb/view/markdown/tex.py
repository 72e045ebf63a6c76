"""Which TeX a front end may typeset: formulas that stay in their box.

Why: TeX can move boxes (`raise`, `llap`, `kern`), claim that a box is smaller than what it draws
(`smash`), or hide either behind a definition: an answer could paint an approval over another cell.

Rule: the lists allow commands and do not forbid any, because MathJax may get more dangerous ones. A
formula with another command is shown as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TIGHT = 8  # how often a formula may use `\!`
DEEPEST = 60  # nested braces
_SYMBOLS = """
    And Arrowvert Bbbk Box Bumpeq Cap Cup Delta Diamond Doteq Downarrow Finv Game Gamma Im Join Lambda Leftarrow Leftrightarrow
    Lleftarrow Longleftarrow Longleftrightarrow Longrightarrow Lsh Omega P Phi Pi Psi Re Rightarrow Rrightarrow Rsh S Sigma Subset Supset
    Theta Uparrow Updownarrow Upsilon Vdash Vert Vvdash Xi aleph alpha amalg angle approx approxeq arrowvert ast asymp backepsilon
    backprime backsim backsimeq backslash barwedge because beta beth between bigcap bigcirc bigcup bigodot bigoplus bigotimes bigsqcup
    bigstar bigtriangledown bigtriangleup biguplus bigvee bigwedge blacklozenge blacksquare blacktriangle blacktriangledown
    blacktriangleleft blacktriangleright bot bowtie boxdot boxminus boxplus boxtimes bracevert bullet bumpeq cap cdot cdotp cdots
    centerdot checkmark chi circ circeq circlearrowleft circlearrowright circledR circledS circledast circledcirc circleddash clubsuit
    colon coloneqq complement cong coprod cup curlyeqprec curlyeqsucc curlyvee curlywedge curvearrowleft curvearrowright dagger daleth
    dashleftarrow dashrightarrow dashv dblcolon ddagger ddots degree delta diagdown diagup diamond diamondsuit digamma div divideontimes
    doteq doteqdot dotplus dots dotsb dotsc dotsi dotsm dotso doublebarwedge doublecap doublecup downarrow downdownarrows
    downharpoonleft downharpoonright ell emptyset epsilon eqcirc eqqcolon eqsim eqslantgtr eqslantless equiv eta eth exists
    fallingdotseq flat forall frown gamma ge geq geqq geqslant gets gg ggg gggtr gimel gnapprox gneq gneqq gnsim gt gtrapprox gtrdot
    gtreqless gtreqqless gtrless gtrsim gvertneqq hbar heartsuit hookleftarrow hookrightarrow hslash idotsint iff iiiint iiint iint
    imath implies impliedby in infty int intercal intop iota jmath kappa lVert lambda land langle lbrace lbrack lceil ldotp ldots le
    leadsto leftarrow leftarrowtail leftharpoondown leftharpoonup leftleftarrows leftrightarrow leftrightarrows leftrightharpoons
    leftrightsquigarrow leftthreetimes leq leqq leqslant lessapprox lessdot lesseqgtr lesseqqgtr lessgtr lesssim lfloor lgroup lhd ll
    llcorner lll llless lmoustache lnapprox lneq lneqq lnot lnsim longleftarrow longleftrightarrow longmapsto longrightarrow
    looparrowleft looparrowright lor lozenge lparen lrcorner lt ltimes lvert lvertneqq maltese mapsto measuredangle mho mid models mp mu
    multimap nLeftarrow nLeftrightarrow nRightarrow nVDash nVdash nabla natural ncong ne nearrow neg neq nexists ngeq ngeqq ngeqslant
    ngtr ni nleftarrow nleftrightarrow nleq nleqq nleqslant nless nmid notin nparallel nprec npreceq nrightarrow nshortmid
    nshortparallel nsim nsubseteq nsubseteqq nsucc nsucceq nsupseteq nsupseteqq ntriangleleft ntrianglelefteq ntriangleright
    ntrianglerighteq nu nvDash nvdash nwarrow odot oint omega omicron ominus oplus oslash otimes owns parallel partial perp phi pi
    pitchfork pm pounds prec precapprox preccurlyeq preceq precnapprox precneqq precnsim precsim prime prod propto psi rVert rangle
    rbrace rbrack rceil restriction rfloor rgroup rhd rho rightarrow rightarrowtail rightharpoondown rightharpoonup rightleftarrows
    rightleftharpoons rightrightarrows rightsquigarrow rightthreetimes risingdotseq rmoustache rparen rtimes rvert searrow setminus
    sharp shortmid shortparallel sigma sim simeq smallfrown smallint smallsetminus smallsmile smile spadesuit sphericalangle sqcap sqcup
    sqsubset sqsubseteq sqsupset sqsupseteq square star subset subseteq subseteqq subsetneq subsetneqq succ succapprox succcurlyeq
    succeq succnapprox succneqq succnsim succsim sum supset supseteq supseteqq supsetneq supsetneqq surd swarrow tau therefore theta
    thickapprox thicksim times to top triangle triangledown triangleleft trianglelefteq triangleq triangleright trianglerighteq
    twoheadleftarrow twoheadrightarrow ulcorner unlhd unrhd uparrow updownarrow upharpoonleft upharpoonright uplus upsilon upuparrows
    urcorner vDash varDelta varGamma varLambda varOmega varPhi varPi varPsi varSigma varTheta varUpsilon varXi varepsilon varkappa
    varnothing varphi varpi varpropto varrho varsigma varsubsetneq varsubsetneqq varsupsetneq varsupsetneqq vartheta vartriangle
    vartriangleleft vartriangleright vdash vdots vee veebar vert wedge wp wr xi yen zeta
"""
_FUNCTIONS = """
    Pr arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf injlim ker lg lim liminf limsup ln log max min
    projlim sec sin sinh sup tan tanh varinjlim varliminf varlimsup varprojlim operatorname bmod mod pmod pod
"""
_FONTS_AND_SIZES = """
    Bbb bf bigl bigm bigr big Bigl Bigm Bigr Big biggl biggm biggr bigg Biggl Biggm Biggr Bigg boldsymbol cal displaystyle emph frak it
    mathbb mathbf mathbin mathcal mathclose mathfrak mathinner mathit mathnormal mathop mathopen mathord mathpunct mathrel mathrm
    mathscr mathsf mathtt mathup mit normalsize pmb rm scriptscriptstyle scriptsize scriptstyle scr sf small text textbf textit
    textnormal textrm textsf textstyle texttt textup tiny tt
"""
# accents, fractions, roots, boxes, spaces
_FRAMES = """
    LaTeX TeX acute atop bar binom boxed brace brack breve bcancel cancel cancelto centernot cfrac check choose cr dbinom dddot
    ddddot ddot dfrac dot enspace fbox frac grave hat hbox hdashline hline hphantom left limits mathring mathstrut mbox middle newline
    nobreakspace nolimits nonumber not notag of over overbrace overleftarrow overleftrightarrow overline overparen overrightarrow
    overset phantom qquad quad right root shoveleft shoveright sideset space sqrt stackrel strut substack tbinom tfrac thinspace tilde
    underbrace underleftarrow underleftrightarrow underline underparen underrightarrow underset vec vphantom widehat widetilde xcancel
    xleftarrow xleftrightarrow xrightarrow xLeftarrow xLeftrightarrow xRightarrow xhookleftarrow xhookrightarrow xmapsto
    bra ket braket Bra Ket Braket set Set ketbra ce pu
"""
NAMES = frozenset(f"{_SYMBOLS} {_FUNCTIONS} {_FONTS_AND_SIZES} {_FRAMES}".split())
# commands of one character
SIGNS = frozenset(" \n\t,:;>!{}|_%$&#\\/\"'`^~=.()[]")
_ENVIRONMENTS = (
    r"(?:[pbBvV]?matrix|smallmatrix|[dr]?cases|drcases|aligned|gathered|split|CD|(?:equation|align|gather|multline|eqnarray|flalign)\*?"
    r"|(?:alignat\*?|alignedat)\}\s*\{\d{1,2}|(?:array|subarray)\}\s*(?:\[[tcb]\]\s*)?\{[lcr|:\s@!{}*\d]{1,60})"
)
_LENGTH = r"\s*(?:[0-4]?(?:\.\d+)?(?:em|ex|cm)|\d{1,2}(?:\.\d+)?(?:px|pt|mm|mu))\s*"
_COLOUR = r"\s*\{(?:[a-zA-Z]{3,20}|#[0-9a-fA-F]{6})\}"
# command -> pattern of the arguments that must follow it
ARGUMENTS: dict[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "begin": rf"\s*\{{{_ENVIRONMENTS}\}}",
        "end": r"\s*\{[a-zA-Z]{1,12}\*?\}",
        "hspace": rf"\*?\s*\{{{_LENGTH}\}}",
        "mspace": rf"\s*\{{{_LENGTH}\}}",
        "color": _COLOUR,
        "textcolor": _COLOUR,
        "tag": r"\*?\s*\{[\w.*'() -]{1,12}\}",
        "label": r"\s*\{[\w.:-]{1,60}\}",
        # a new line, further down by the length
        "\\": rf"\*?+\s*+(?:\[{_LENGTH}\]|(?!\[\s*[-+]?\s*[\d.,]+\s*[a-zA-Z]+\s*\]))",
    }.items()
}
_COMMAND = re.compile(r"\\([a-zA-Z]+|.)", re.DOTALL)
_BRACES = re.compile(r"\\.|[{}]", re.DOTALL)


def is_harmless(formula: str) -> bool:
    """Return whether a formula, with or without delimiters, stays in its box when typeset."""
    return next(find_refused(formula), None) is None and _is_balanced(formula)


def find_refused(text: str) -> Iterator[int]:
    """Yield the positions (of the backslash) of commands that may not be typeset."""
    tight = 0  # how often symbols are moved together
    for match in _COMMAND.finditer(text):
        name = match[1]
        tight += name == "!"
        argument = ARGUMENTS.get(name)
        allowed = name in SIGNS or name in NAMES
        if argument is not None:
            allowed = argument.match(text, match.end()) is not None
        if not allowed or (name == "!" and tight > TIGHT):
            yield match.start()


def _is_balanced(formula: str) -> bool:
    depth = 0
    for match in _BRACES.finditer(formula):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not 0 <= depth <= DEEPEST:
            return False
    return depth == 0
