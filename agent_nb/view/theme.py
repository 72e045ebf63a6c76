"""The design system: spacing, type, tones. Every style string of the view is made here.

Colours are roles of the host (`--jp-…`) with a fallback, mixed with the text colour around them.
The mix is why one inline style has AA contrast on light and on dark ground: it darkens a tone on
paper and lightens it at night, also where no role is defined (VS Code, Colab, print). The literal
`rgb(…)` inside is needed: JupyterLab's sanitizer, which untrusted outputs pass through, drops a
colour without one. Hairlines and grounds are a neutral grey with alpha, which needs no theme.

Rules: inline styles only use properties that JupyterLab's sanitizer keeps; no `position`, no
`z-index`, no `url()`; sizes in px. `LIVE_CSS` is for the live view alone (one style element inside
a widget): focus, motion, the skin of ipywidgets. Finished parts of a long text are not laid out
while they are out of sight; they keep the height they were last seen with, so parts that were never
seen in this shape (merged ones) are left out of it. This file imports nothing.
"""

from __future__ import annotations

TINY, SMALL, BASE, PROSE = "11px", "12px", "13px", "14px"
WIDTH = "880px"
RADIUS = "6px"
LINE = "1px solid rgba(128,128,128,0.28)"
HAIR = "1px solid rgba(128,128,128,0.18)"
GROUND = "rgba(128,128,128,0.09)"
TRACK = "rgba(128,128,128,0.22)"

# tone: (role, fallback, share of the role in text, in per cent)
ROLES: dict[str, tuple[str, str, int]] = {
    "muted": ("--jp-ui-font-color2", "rgb(118,118,118)", 72),
    "ok": ("--jp-success-color1", "rgb(46,148,66)", 78),
    "run": ("--jp-brand-color1", "rgb(38,128,230)", 82),
    "wait": ("--jp-warn-color1", "rgb(224,130,20)", 56),
    "bad": ("--jp-error-color1", "rgb(222,60,54)", 84),
}
# Pygments' families of tokens: a mid tone, mixed like the others
SYNTAX: dict[str, tuple[str, int]] = {
    "keyword": ("rgb(150,90,220)", 72),
    "string": ("rgb(190,80,60)", 70),
    "number": ("rgb(20,130,110)", 70),
    "comment": ("rgb(115,120,128)", 74),
    "name": ("rgb(40,115,210)", 72),
    "inserted": ("rgb(46,148,66)", 78),
    "deleted": ("rgb(222,60,54)", 80),
}


def mixed(colour: str, share: int, into: str = "currentColor") -> str:
    """Return `share` per cent of a colour mixed into another."""
    return f"color-mix(in srgb,{colour} {share}%,{into})"


def role(tone: str) -> str:
    """Return the pure colour of a tone, for marks and bars."""
    name, fallback, _ = ROLES[tone]
    return f"var({name},{fallback})"


def ink(tone: str) -> str:
    """Return the style of text in `tone` ("" for the text colour as it is)."""
    return f"color:{mixed(role(tone), ROLES[tone][2])}" if tone else ""


def tint(tone: str, share: int = 8) -> str:
    """Return the style of a ground in `tone`; without a tone it is the neutral ground."""
    return (
        f"background-color:{mixed(role(tone), share, 'transparent')}"
        if tone and tone != "muted"
        else f"background-color:{GROUND}"
    )


def fill(tone: str) -> str:
    """Return the style of a bar in `tone`."""
    return f"background-color:{mixed(role(tone or 'muted'), 88)}"


def lane(tone: str) -> str:
    """Return the style of the strip that shows when a call ran."""
    return f"background-color:{mixed(role(tone), 55, 'transparent')}"


def link() -> str:
    """Return the style of a link."""
    return f"color:{mixed('var(--jp-content-link-color,rgb(40,110,220))', 85)}"


def syntax(family: str) -> str:
    """Return the style of a family of code tokens."""
    colour, share = SYNTAX[family]
    return f"color:{mixed(colour, share)}"


FAMILY = "font-family:Menlo,Consolas,'DejaVu Sans Mono',monospace"
INDENT = "16px"  # what a fold's marker takes, in the rows without one too
PAGE = f"max-width:{WIDTH};font-size:{BASE};line-height:1.5;margin:0;padding:2px 0"
HEADER = "margin:0 0 6px"
FOOTER = f"margin:8px 0 0;padding:4px 0 0;border-top:{HAIR};font-size:{SMALL}"
PANEL = f"border:{LINE};border-radius:{RADIUS};margin:6px 0;overflow:hidden"
STEP = "padding:3px 10px"
STEP_LINE = f"padding:3px 10px 3px calc({INDENT} + 10px)"
ROW = "display:flex;justify-content:space-between;align-items:baseline"
LEFT = "min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"
RIGHT = "white-space:nowrap"
SUMMARY = f"cursor:pointer;list-style-position:outside;margin-left:{INDENT}"
BODY = f"margin:2px 0 1px {INDENT}"
BOX = f"border-radius:{RADIUS};padding:5px 10px;margin:6px 0"
PRE = f"margin:4px 0;padding:6px 8px;border-radius:4px;background-color:{GROUND};font-size:{SMALL};line-height:1.45;overflow:auto;{FAMILY}"
HEIGHT = "max-height:20em"
SCROLLS = 60  # letters of a line that may be too long for a narrow column
MONO = f"font-size:{SMALL};{FAMILY};background-color:transparent;padding:0;white-space:nowrap"
GLYPH = "display:inline-block;width:17px"
SMALL_TEXT = f"font-size:{SMALL}"
ANSWER = f"font-size:{PROSE};line-height:1.55;margin:8px 0 2px"
THOUGHT = f"font-size:{BASE};line-height:1.5"
TABLE = f"border-collapse:collapse;margin:4px 0;font-size:{SMALL};border:0"
CELL = f"padding:2px 10px 2px 0;border:0;border-bottom:{HAIR};text-align:left;vertical-align:top"
SIDE = f"{CELL};white-space:pre-wrap;overflow-wrap:anywhere;{FAMILY}"
TREE = "list-style:none;margin:4px 0;padding:0"
BRANCHES = f"list-style:none;margin:0 0 2px 5px;padding:0 0 0 14px;border-left:{LINE}"
BRANCH = "margin:1px 0;padding:0"
METER = f"display:inline-block;width:44px;height:5px;border-radius:3px;margin:0 0 0 10px;vertical-align:middle;background-color:{TRACK}"
FIGURE = "display:inline-block;min-width:40px;text-align:right"
WORDS = "min-width:0;overflow-wrap:break-word"
IMAGE = "max-width:100%;max-height:480px;margin:4px 0"

LIVE_CSS = """
.agent-nb{max-width:880px;padding:2px 0;overflow:visible}
.agent-nb .widget-html,.agent-nb .jupyter-widget-html,.agent-nb .widget-htmlmath{margin:0;width:auto;min-height:0;line-height:1.5}
.agent-nb .widget-html-content,.agent-nb .widget-htmlmath-content{line-height:1.5;font-size:13px;overflow:visible;align-self:auto;flex:1;
 min-width:0;padding:0 3px}
.agent-nb .jupyter-widget-box,.agent-nb .jupyter-widgets{margin:0}
.agent-nb .jupyter-widget-box{overflow:visible}
.agent-nb-panel{border:1px solid rgba(128,128,128,.28);border-radius:6px;margin:6px 0 !important;overflow:hidden !important}
.agent-nb-run{background:color-mix(in srgb,var(--jp-brand-color1,#2680e6) var(--agent-nb-tint,6%),transparent)}
.agent-nb-wait{background:color-mix(in srgb,var(--jp-warn-color1,#e08214) var(--agent-nb-tint,10%),transparent)}
.agent-nb-bad{background:color-mix(in srgb,var(--jp-error-color1,#de3c36) 8%,transparent)}
.agent-nb-head{align-items:baseline;gap:12px}
.agent-nb-head>.widget-html,.agent-nb-head>.jupyter-widget-html{flex:1;min-width:0}
.agent-nb .jupyter-button,.agent-nb .widget-button{height:24px;line-height:22px;width:auto;padding:0 10px;margin:0;font-size:12px;
 border:1px solid rgba(128,128,128,.4);border-radius:5px;background:transparent;
 color:var(--jp-ui-font-color1,inherit);box-shadow:none;flex:none}
.agent-nb .jupyter-button:hover:enabled{background:rgba(128,128,128,.14);box-shadow:none}
.agent-nb .jupyter-button:focus-visible,.agent-nb summary:focus-visible{outline:2px solid var(--jp-brand-color1,#2680e6);outline-offset:1px}
.agent-nb .jupyter-button.mod-success{border-color:var(--jp-success-color1,#2e9442);color:inherit}
.agent-nb .jupyter-button.mod-danger{border-color:var(--jp-error-color1,#de3c36);color:inherit}
.agent-nb-buttons{gap:8px;margin:4px 0 2px !important;flex-flow:row wrap}
.agent-nb-head .agent-nb-buttons{margin:0 !important}
.agent-nb .agent-nb-head .jupyter-button{height:20px;line-height:18px}
.agent-nb .jupyter-widget-Accordion,.agent-nb .jupyter-widget-Collapse{margin:0;border:0}
.agent-nb .jupyter-widget-Collapse-header{padding:0 2px;border:0;background:transparent;font-size:13px;line-height:1.5;font-weight:400;
 color:color-mix(in srgb,var(--jp-ui-font-color2,rgb(118,118,118)) 72%,var(--jp-ui-font-color1,currentColor));
 white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.agent-nb .jupyter-widget-Collapse-header:hover{background:transparent;color:var(--jp-ui-font-color1,inherit)}
.agent-nb .jupyter-widget-Collapse-header:focus-visible{outline:2px solid var(--jp-brand-color1,#2680e6)}
.agent-nb .jupyter-widget-Collapse-contents{padding:2px 3px 4px 19px;border:0;background:transparent;font-size:13px}
.agent-nb .jupyter-widget-Collapse-open>.jupyter-widget-Collapse-header{background:transparent;border:0}
.agent-nb .widget-hprogress,.agent-nb .jupyter-widget-hprogress{height:6px;width:100%;margin:5px 0 2px;padding:0 3px}
.agent-nb .widget-hprogress .progress,.agent-nb .progress{height:6px;border-radius:3px;background:rgba(128,128,128,.22);margin:0;border:0}
.agent-nb .progress-bar{border-radius:3px;height:6px;background:var(--jp-brand-color1,#2680e6);transition:width .12s linear}
.agent-nb textarea{font-family:var(--jp-code-font-family,monospace);font-size:12px;width:100%}
.agent-nb .jupyter-widget-textarea,.agent-nb .widget-textarea{width:calc(100% - 6px);height:auto;margin:4px 3px}
.agent-nb-scroll{display:flex;flex-direction:column-reverse !important;max-height:18em;overflow:auto !important}
.agent-nb .agent-nb-panel>*{padding:3px 8px}
.agent-nb .agent-nb-panel>.agent-nb-line{padding-left:24px}
.agent-nb .agent-nb-panel .agent-nb-buttons{padding-left:3px}
.agent-nb .agent-nb-panel>*+*{border-top:1px solid rgba(128,128,128,.18)}
.agent-nb-prose>*{contain-intrinsic-height:auto 1200px}
.agent-nb-prose>:not(:last-child):not(.agent-nb-merged){content-visibility:auto}
@media (prefers-reduced-motion:reduce){.agent-nb .progress-bar{transition:none}}
""".strip()

# What a live view shows when its kernel is gone, which nobody can tell it then. A restart marks
# every widget; a death marks none, but the beats of the page (`Board.beat`) stay away, each of
# which begins the animation, and with it the wait, anew.
SILENCE = 15  # seconds without a beat
_GONE = "--agent-nb-on:none;--agent-nb-off:block;--agent-nb-tint:0%"
BEATS = ("agent-nb-tick", "agent-nb-tock")
GONE_CSS = "\n".join(
    (
        *(
            f"@keyframes {name}{{from,to{{{_GONE}}}}}\n.{name}{{animation:{name} 1s {SILENCE}s forwards}}"
            for name in BEATS
        ),
        f".agent-nb.jupyter-widgets-disconnected{{{_GONE}}}",
        ".agent-nb.jupyter-widgets-disconnected::before,.agent-nb .jupyter-widgets-disconnected::before{content:none}",
        ".agent-nb .agent-nb-head{display:var(--agent-nb-on,flex)}",
        ".agent-nb .jupyter-button{display:var(--agent-nb-on,inline-block)}",
        ".agent-nb .agent-nb-now{display:var(--agent-nb-on,inline)}",
        ".agent-nb .agent-nb-gone{display:var(--agent-nb-off,none);padding-bottom:6px}",
    )
)
