"""The neutral nodes: a card before it becomes HTML, widgets, markdown or plain text.

Why: the live widgets, the static page, the terminal and the markdown must show the same. Cards
return nodes; each drawer has one table from node type to function.

Rules
- Frozen values. Text is raw; the drawer escapes it. No styles, only tones, which say what a text
  means (`ok`, `bad`), not how it looks.
- `Button`, `Editor` and `Field` are drawn in the live view only. What changes there (buttons,
  editors, bars, accordions, prose with a key) has widgets of its own; all else is static HTML.

This file imports nothing of ours.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

Tone = Literal["", "muted", "ok", "run", "wait", "bad"]


class Node(msgspec.Struct, frozen=True, eq=False):
    """Base of all nodes.

    Compared by identity: an unchanged card returns the same node again.
    """


class T(Node, frozen=True, eq=False):
    """A run of text, the smallest part of a line.

    `mono`: code; `label`: replaces the text for screen readers; `hint`: shown when a pointer rests
    on it; `now`: holds only while the kernel lives, so the live view hides it when the kernel died.
    `language`: of code (`mono`), the Pygments name by which it is coloured.
    """

    text: str
    tone: Tone = ""
    bold: bool = False
    italic: bool = False
    mono: bool = False
    label: str = ""
    now: bool = False
    hint: str = ""
    language: str = ""


class Row(Node, frozen=True, eq=False):
    """One line with two sides.

    `left` is cut with an ellipsis when there is no room, `right` never. `wrap`: `left` breaks
    instead of being cut. `live`: screen readers announce its changes (`aria-live`).
    """

    left: tuple[T, ...]
    right: tuple[T, ...] = ()
    live: bool = False
    wrap: bool = False
    buttons: tuple[Button, ...] = ()


class Fold(Node, frozen=True, eq=False):
    """A line (`summary`) that opens to `body`; `title` is the line as plain text.

    - `accordion`: in text forms it is only its summary, unless it is open for good.
    - `gives_way`: open until what follows it has filled its height (`layout`); text forms show it
      as if it were closed.
    - `lines`: how many lines of an open body are shown at most, the last ones first; 0: all.
    - `key`: the live view draws it as widgets, so that it stays as its reader left it.
    """

    summary: tuple[Node, ...]
    body: tuple[Node, ...]
    open: bool = False
    accordion: bool = False
    title: str = ""
    gives_way: bool = False
    lines: float = 0
    key: str = ""

    @property
    def folded(self) -> bool:
        """Whether text forms show it closed."""
        return self.gives_way or not self.open


class Stack(Node, frozen=True, eq=False):
    """Nodes one below the other."""

    children: tuple[Node, ...]


class Box(Node, frozen=True, eq=False):
    """Nodes that belong together, tinted by tone; the left edge has the colour of the tone."""

    children: tuple[Node, ...]
    tone: Tone = ""


class Step(Node, frozen=True, eq=False):
    """One row of a panel, with the key by which a redraw finds its widgets.

    `tone` tints the row: the step runs, or waits for the user.
    """

    key: str
    child: Node
    tone: Tone = ""

    @property
    def marked(self) -> bool:
        """Whether the row begins with a fold, whose marker takes the place of the indent."""
        rows = self.child.children[:1] if isinstance(self.child, Stack) else (self.child,)
        return any(isinstance(row, Fold) and row.body for row in rows)


class Panel(Node, frozen=True, eq=False):
    """Steps in order, as rows divided by hairlines."""

    steps: tuple[Step, ...]


class Section(Node, frozen=True, eq=False):
    """A part of the page: header, panel, answer, footer; a redraw finds its widgets by `key`."""

    key: str
    child: Node


class Page(Node, frozen=True, eq=False):
    """A whole view; `label` states its name and status for assistive technology."""

    label: str
    sections: tuple[Section, ...]


class Pre(Node, frozen=True, eq=False):
    """Preformatted text, such as output; with `wrap`, long lines break."""

    text: str
    tone: Tone = ""
    wrap: bool = True


class Code(Node, frozen=True, eq=False):
    """Source code in `language` (a Pygments name, or "").

    `whole`: one click selects all of it; `last`: only so many of its last lines are shown (0: all).
    """

    text: str
    language: str = ""
    whole: bool = False
    last: int = 0

    @property
    def begin(self) -> int:
        """The index of the first character that is shown."""
        at = len(self.text.rstrip("\n")) if self.last else 0
        for _ in range(self.last):
            at = self.text.rfind("\n", 0, max(at, 0))
        return at + 1 if self.last else 0


class Bar(Node, frozen=True, eq=False):
    """Progress: `fraction` 0 to 1, or None if unknown; `label` says it in words.

    `name` says what progresses, for assistive technology.
    """

    fraction: float | None
    label: str
    tone: Tone = "run"
    name: str = "progress"


class Prose(Node, frozen=True, eq=False):
    """Markdown.

    `open`: the text may still grow; `dim`: a thought rather than the answer; `key`: the live view
    finds its widgets by it ("": static).
    """

    text: Any  # a str, or a growing `state.text.Text`
    open: bool = False
    dim: bool = False
    key: str = ""


class Json(Node, frozen=True, eq=False):
    """A JSON value as a tree."""

    value: Any


class Branch(Node, frozen=True, eq=False):
    """One line of a tree and the branches below it; `detail`: what the line opens to.

    `figure` is at the end of the line, after a small bar of `share` (0 to 1) in `tone`; `strong`:
    the line to the branches below is coloured, because the chosen path goes through here.
    """

    row: Row
    branches: tuple[Branch, ...] = ()
    detail: tuple[Node, ...] = ()
    figure: str = ""
    share: float | None = None
    tone: Tone = ""
    strong: bool = False


class Tree(Node, frozen=True, eq=False):
    """Branches below one another; `label` names the tree for assistive technology."""

    branches: tuple[Branch, ...]
    label: str = ""


class Table(Node, frozen=True, eq=False):
    """Rows of cells under column names; `note` says how much was left out.

    `sides`: the rows are aligned lines of two texts (`record.SideBySide`), in a fixed pitch, with
    their white space, coloured where they differ. `figures`: the indices of columns of numbers,
    which are aligned to the right. `cut`: those of texts that share what room is left, on one line,
    cut with an ellipsis.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    sides: bool = False
    figures: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()


class Image(Node, frozen=True, eq=False):
    """A raster image: its media type and base64 data."""

    media_type: str
    data: str
    alt: str = "image"


class Interactive(Node, frozen=True, eq=False):
    """What a front end draws from its MIME bundle `data`: a chart, or a widget of this kernel.

    `still`: what stands where it is not drawn (text forms, exports, folds). In the page that stays,
    it is an output of its own (`parts`).
    """

    data: Any  # a dict
    still: tuple[Node, ...] = ()


class Diff(Node, frozen=True, eq=False):
    """A unified diff."""

    text: str


class Html(Node, frozen=True, eq=False):
    """HTML from a tool, not sanitised (the drawer does it); `text` is its plain form."""

    html: str
    text: str = ""


class Button(Node, frozen=True, eq=False):
    """A button of the live view; a press calls `actions(action, payload)` (see `presses`).

    `busy`: its label after the press.
    """

    action: str
    label: str
    payload: Any = None
    tone: Tone = ""
    busy: str = ""
    enabled: bool = True
    hint: str = ""

    @property
    def key(self) -> str:
        """What identifies the button: the action, and what it is about."""
        return f"{self.action}:{self.about}"

    @property
    def about(self) -> str:
        """What identifies the question that it answers: the call, and its mark if it has one."""
        about = self.payload if isinstance(self.payload, dict) else {}
        return ":".join(str(about[name]) for name in ("call_id", "question") if name in about)


class Buttons(Node, frozen=True, eq=False):
    """Buttons in a row."""

    children: tuple[Button, ...]


class Field(Node, frozen=True, eq=False):
    """One field of an editor, which begins with `value`; `fault` says what is wrong in it.

    `kind`: text areas for code, text and JSON; lines for a short text and a number; a flag; one of
    `choices`. `hint`: what to type, if the name does not say it.
    """

    name: str
    kind: Literal["code", "text", "json", "line", "number", "flag", "choice"]
    value: Any
    choices: tuple[Any, ...] = ()
    hint: str = ""
    fault: str = ""


class Editor(Node, frozen=True, eq=False):
    """Fields of the live view: the arguments of a call, or words about it.

    `about` identifies its question. `fault` says why they cannot be submitted, if no field alone is
    wrong.
    """

    about: str
    fields: tuple[Field, ...]
    fault: str = ""


class Form(Node, frozen=True, eq=False):
    """What a question is about and its controls, with keys of their own (see `widgets.keys`)."""

    children: tuple[Node, ...]


def unfit(value: Any, kind: Any = Node) -> str:
    """Return why a value is not of the type `kind`, with all its fields, or "".

    The nodes of other packages are checked so, since msgspec does not check what a constructor
    gets. `kind` is a type that occurs as the field of a node.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return ""
    if origin is UnionType:
        return "" if any(not unfit(value, one) for one in inner) else _describe_fault(value, kind)
    if origin is Literal:
        return "" if value in inner else _describe_fault(value, kind)
    if origin is tuple:
        faults = (
            (unfit(each, inner[0]) for each in value)
            if isinstance(value, tuple)
            else iter((_describe_fault(value, kind),))
        )
        return next(filter(None, faults), "")
    # a subclass of a node is refused: it could compute its fields anew after this check
    if not isinstance(value, (int, float) if kind is float else kind) or (
        isinstance(value, Node) and type(value).__module__ != __name__
    ):
        return _describe_fault(value, kind)
    fields = _fields(type(value)) if isinstance(value, Node) else {}
    return next(
        filter(None, (unfit(getattr(value, name), sort) for name, sort in fields.items())), ""
    )


@cache
def _fields(node: type[Node]) -> dict[str, Any]:
    return get_type_hints(node)


def _describe_fault(value: Any, kind: Any) -> str:
    return f"{type(value).__name__} in place of {getattr(kind, '__name__', kind)}"
