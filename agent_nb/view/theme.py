"""The design system: sizes, tones, and the style declarations of each part of a page.

Colours are roles of the host (`--jp-…`) with a fallback, mixed with the text colour around them.
Mixing gives one inline style AA contrast on light and dark backgrounds, also where the host defines
no role (VS Code, Colab, print).

Rules
- JupyterLab's sanitizer drops a colour whose fallback is not a literal `rgb(…)`. It also drops
  `position`, `z-index`, `url()`, and `user-select`, which only `WHOLE` uses.
- Two margins must not touch, because boxes of widgets do not collapse them.
- `live.css` refers to these declarations by name (`$PANEL`).
"""

from __future__ import annotations

TINY, SMALL, BASE, PROSE = "11px", "12px", "13px", "14px"
WIDTH = "880px"
RADIUS = "6px"
LINE = "1px solid #8884"  # around panels
HAIR = "1px solid #8883"  # between rows
GROUND = "#8881"
TRACK = "#8883"  # behind a bar

# tone -> (role, fallback, per cent of the role in text)
ROLES: dict[str, tuple[str, str, int]] = {
    "muted": ("--jp-ui-font-color2", "rgb(118,118,118)", 72),
    "ok": ("--jp-success-color1", "rgb(46,148,66)", 78),
    "run": ("--jp-brand-color1", "rgb(38,128,230)", 82),
    "wait": ("--jp-warn-color1", "rgb(224,130,20)", 56),
    "bad": ("--jp-error-color1", "rgb(222,60,54)", 84),
}
# family of code tokens (`markdown.highlight`) -> (colour, per cent of it in text)
SYNTAX: dict[str, tuple[str, int]] = {
    "keyword": ("rgb(150,90,220)", 72),
    "string": ("rgb(190,80,60)", 66),
    "number": ("rgb(20,130,110)", 70),
    "comment": ("rgb(115,120,128)", 74),
    "name": ("rgb(40,115,210)", 72),
    "inserted": ("rgb(46,148,66)", 78),
    "deleted": ("rgb(222,60,54)", 80),
}


def mixed(colour: str, share: int, into: str = "currentColor") -> str:
    """Return `share` per cent of a colour mixed into another, as a CSS colour."""
    return f"color-mix(in srgb,{colour} {share}%,{into})"


def role(tone: str) -> str:
    """Return the pure colour of a tone, for marks and bars."""
    name, fallback, _ = ROLES[tone]
    return f"var({name},{fallback})"


def ink(tone: str) -> str:
    """Return the style of text in `tone` ("": the text colour unchanged)."""
    return f"color:{mixed(role(tone), ROLES[tone][2])}" if tone else ""


def tint(tone: str, share: int = 8) -> str:
    """Return the style of a background in `tone`; "" and `muted` give the neutral one."""
    if tone and tone != "muted":
        return f"background-color:{mixed(role(tone), share, 'transparent')}"
    return f"background-color:{GROUND}"


def fill(tone: str) -> str:
    """Return the style of a bar in `tone`."""
    return f"background-color:{mixed(role(tone or 'muted'), 88)}"


def syntax(family: str) -> str:
    """Return the style of a family of code tokens."""
    colour, share = SYNTAX[family]
    return f"color:{mixed(colour, share)}"


def height(lines: float) -> str:
    """Return the declaration that limits an element to a height of `lines` lines."""
    return f"max-height:{lines * 1.5:g}em"


# Declarations for a style attribute, named after the part of the page that they are for.

MONOSPACE = "Menlo,Consolas,monospace"
FAMILY = f"font-family:{MONOSPACE}"
MARKER = 16  # px, the width of a fold's marker, kept free in rows without one
INDENT = f"{MARKER}px"
PAGE = f"max-width:{WIDTH};font-size:{BASE};line-height:1.5;margin:0;padding:2px 0;overflow-wrap:break-word"
HEADER = "padding:0 0 3px"
FOOTER = f"margin:8px 0 0;padding:4px 0 0;border-top:{HAIR};font-size:{SMALL}"
PANEL = f"border:{LINE};border-radius:{RADIUS};margin:3px 0 0;overflow:hidden"
STEP = "padding:3px 10px"
STEP_LINE = f"padding:3px 10px 3px {MARKER + 10}px"
ROW = "display:flex;justify-content:space-between;align-items:baseline"
ROWS = f"{ROW};flex-wrap:wrap"  # the right side goes below where the left one would be narrow
ENDS = "overflow:hidden;text-overflow:ellipsis"
LEFT = f"min-width:0;{ENDS};white-space:nowrap"
RIGHT = "white-space:nowrap"
# a right side that has a text to cut; the left side keeps 40 % of the line
RIGHT_CUT = f"display:flex;flex:none;max-width:60%;{RIGHT}"
SUMMARY = f"cursor:pointer;list-style-position:outside;margin-left:{INDENT}"
# a body that shows only some lines (`height`), the last ones
ROOM = "box-sizing:border-box;overflow:auto;display:flex;flex-direction:column-reverse"
BODY = f"padding:2px 0 1px {INDENT}"
BOX = f"border-radius:{RADIUS};padding:5px 10px;margin:3px 0 0"
PRE = f"margin:4px 0 0;padding:6px 8px;border-radius:4px;background:{GROUND};font:{SMALL}/1.45 {MONOSPACE};overflow:auto"
HEIGHT = "max-height:20em"
WHOLE = "-webkit-user-select:all;user-select:all"
SCROLLS = 60  # letters; a longer line may be too long for a narrow column, so it must scroll
MONO = f"font-size:{SMALL};{FAMILY};background-color:transparent;padding:0;white-space:nowrap"
GLYPH = "display:inline-block;width:17px"  # of a tool: of one width, so that the names line up
BAR = "height:5px;border-radius:3px;margin:3px 0 0"
BAR_WORDS = f"font-size:{SMALL};line-height:16px"  # removing a bar moves the page by 24 px
SMALL_TEXT = f"font-size:{SMALL}"
DIM = ink("muted")
LINK = f"color:{mixed('var(--jp-content-link-color,rgb(40,110,220))', 85)}"
ANSWER = f"font-size:{PROSE};line-height:1.55;padding:8px 0 1px"
THOUGHT = f"font-size:{BASE};line-height:1.5"
TABLE = f"border-collapse:collapse;margin:4px 0 0;font-size:{SMALL};border:0"
CELL = f"padding:2px 10px 2px 0;border:0;border-bottom:{HAIR};text-align:left;vertical-align:top"
SHORT = "white-space:nowrap"  # dates, numbers, names: a table scrolls
# a table whose texts share the room that the other columns leave; in a narrow page it scrolls
SHARED = "table-layout:fixed;width:100%;min-width:340px"
CUT = f"{ENDS};white-space:nowrap"
# a wide block ends with an edge at the right, which shows that it scrolls
EDGE = f"box-sizing:border-box;width:fit-content;max-width:100%;border-right:{LINE}"
LONG = "min-width:150px"  # else the unbroken cells beside it squeeze it to one word a line
BREAKS = "overflow-wrap:anywhere;max-width:560px"  # else a very long word takes nearly all the room
BROKEN = f"{LONG};{BREAKS}"  # a cell whose longest word would squeeze the others
NUMERIC = "text-align:right;font-variant-numeric:tabular-nums;padding-left:14px"
SIDE = f"{CELL};white-space:pre-wrap;{BREAKS};{FAMILY}"
TREE = "list-style:none;margin:4px 0 0;padding:0"
BRANCHES = f"list-style:none;margin:0 0 2px 5px;padding:0 0 0 14px;border-left:{LINE}"
BRANCH = "margin:1px 0;padding:0"
METER = f"display:inline-block;width:44px;height:5px;border-radius:3px;margin:0 0 0 10px;vertical-align:middle;background-color:{TRACK}"
FIGURE = "display:inline-block;min-width:40px;text-align:right"
WORDS = "min-width:0;overflow-wrap:break-word"
WIDE_WORDS = f"flex:1 1 200px;{WORDS}"
# white: many plots have black axes and no background of their own
IMAGE = "max-width:96%;max-height:480px;margin:2px 0 4px 14px;border-radius:4px;background-color:rgb(255,255,255)"

# The animations of `live.css` that show a lost kernel, and how long they wait for a beat. They are
# equal: each beat changes from one to the other, which starts the wait anew.
BEATS = ("agent-nb-tick", "agent-nb-tock")
SILENCE = 15  # seconds without a beat
