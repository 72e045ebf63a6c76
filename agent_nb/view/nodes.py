"""The neutral nodes: what a card shows, before it is drawn as HTML, widgets, markdown or text.

Why: the live widgets, the static page, the terminal and the markdown must show the same. So a node
has no colours, sizes or CSS; its tone says what its text means (`ok`, `bad`). Text is raw, and the
drawer escapes it.

Rule: the live view draws most nodes as static HTML; `needs_widgets` in `widgets.slots` lists those
that change or take input. `Button`, `Editor` and `Field` are drawn nowhere else.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

Tone = Literal["", "muted", "ok", "run", "wait", "bad"]


class Node(msgspec.Struct, frozen=True, eq=False):
    """Base of all nodes. Compared by identity: `layout` keeps the node of an unchanged card."""


class T(Node, frozen=True, eq=False):
    """A run of text, the smallest part of a line.

    - `mono`: the text is code, coloured as `language` (a Pygments name) if that is set.
    - `label`: what screen readers say in place of the text; `hint`: the tooltip.
    - `now`: true only while the kernel lives, so the live view hides it when the kernel is gone.
    - `cut`: on the right side of a row, this text comes first and gives way where room is short.
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
    cut: bool = False


class Row(Node, frozen=True, eq=False):
    """One line with two sides.

    Where room is short, `left` is cut with an ellipsis, and on the right only a `T` with `cut`.
    `wrap`: `left` breaks instead. `live`: screen readers announce its changes (`aria-live`).
    `buttons`: drawn in the live view only.
    """

    left: tuple[T, ...]
    right: tuple[T, ...] = ()
    live: bool = False
    wrap: bool = False
    buttons: tuple[Button, ...] = ()


class Fold(Node, frozen=True, eq=False):
    """A line (`summary`) that opens to `body`; `title` is the line as plain text.

    - `accordion`: text forms (terminal, plain text, markdown) show only its summary while it is
      closed or `gives_way`.
    - `gives_way`: it stays open until the nodes below it have filled its height, then closes
      (`folds`); text forms show it closed.
    - `lines`: an open body shows at most so many lines, the last ones (0: all).
    - `closing`: `lines` become fewer until it is closed; the live view animates that by itself.
    - `line`: shows all of the body, and takes the place of the fold unless a reader saw the body
      while it grew (`folds`).
    - `key`: with a key, the live view draws the fold as widgets, which a redraw does not reset.
    """

    summary: tuple[Node, ...]
    body: tuple[Node, ...]
    open: bool = False
    accordion: bool = False
    title: str = ""
    gives_way: bool = False
    lines: float = 0
    closing: bool = False
    line: Row | None = None
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
    """One row of a panel; a redraw finds its widgets by `key`, and `tone` tints it."""

    key: str
    child: Node
    tone: Tone = ""

    @property
    def marked(self) -> bool:
        """Whether the row begins with a fold, whose marker takes the place of the indent."""
        return fold_of(self.child) is not None


class Panel(Node, frozen=True, eq=False):
    """Steps in order, as rows with hairlines between them."""

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

    `whole`: one click selects all of it; `last`: show only so many lines, from the end (0: all).
    """

    text: str
    language: str = ""
    whole: bool = False
    last: int = 0

    @property
    def begin(self) -> int:
        """The index of the first character that is shown."""
        # back over `last` line ends; -1, before the first line, stays -1 and gives 0
        newline = len(self.text.rstrip("\n")) if self.last else 0
        for _ in range(self.last):
            newline = self.text.rfind("\n", 0, max(newline, 0))
        return newline + 1 if self.last else 0


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
    """One line of a tree and the branches below it; `detail` appears when the line is opened.

    `figure` stands at the end of the line, after a small bar filled to `share` (0 to 1) in `tone`.
    `strong`: the chosen path goes through here, so the line down to its branches is coloured.
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

    - `sides`: the rows compare two texts line by line (`record.SideBySide`): monospaced, with their
      white space, coloured where they differ.
    - `figures`: indices of the columns of numbers, which are aligned to the right.
    - `cut`: indices of the columns of texts that share the remaining width; each text stays on one
      line, cut with an ellipsis.
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
    """A chart, or a widget of this kernel, that the front end draws from the MIME bundle `data`.

    `still` replaces it where it cannot be drawn (text forms, exports, folds). In the page that
    stays in the notebook it is an output of its own (see `parts`).
    """

    data: Any  # a dict
    still: tuple[Node, ...] = ()


class Diff(Node, frozen=True, eq=False):
    """A unified diff."""

    text: str


class Html(Node, frozen=True, eq=False):
    """HTML from a tool, not sanitised (the drawer does it); `text` is its plain form.

    `below`: it stands below a fold, in line with the body of the fold.
    """

    html: str
    text: str = ""
    below: bool = False


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
        """An id of the button: its action, and the question that it answers."""
        return f"{self.action}:{self.about}"

    @property
    def about(self) -> str:
        """An id of the question: the id of its call, then its own id if it has one."""
        payload = self.payload if isinstance(self.payload, dict) else {}
        return ":".join(str(payload[name]) for name in ("call_id", "question") if name in payload)


class Buttons(Node, frozen=True, eq=False):
    """Buttons in a row."""

    children: tuple[Button, ...]


class Field(Node, frozen=True, eq=False):
    """One field of an editor: it begins with `value`; `fault` says what is wrong with its text.

    `kind`: a text area (`code`, `text`, `json`), one line (`line`, `number`), a checkbox (`flag`),
    or a list of `choices`. `hint`: what to type, if the name does not say it.
    """

    name: str
    kind: Literal["code", "text", "json", "line", "number", "flag", "choice"]
    value: Any
    choices: tuple[Any, ...] = ()
    hint: str = ""
    fault: str = ""


class Editor(Node, frozen=True, eq=False):
    """Fields in the live view: for the arguments of a call, or for the reason of a denial.

    `about` identifies the question (`Button.about`). `fault` says why the fields cannot be
    submitted, where no single field is wrong.
    """

    about: str
    fields: tuple[Field, ...]
    fault: str = ""


class Form(Node, frozen=True, eq=False):
    """A question and its controls, which can also be pressed by keys (`widgets.keys`)."""

    children: tuple[Node, ...]


def fold_of(node: Node) -> Fold | None:
    """Return the fold that a node is or begins with, None if there is none with a body."""
    first = node.children[0] if isinstance(node, Stack) and node.children else node
    return first if isinstance(first, Fold) and first.body else None


def unfit(value: Any, kind: Any = Node) -> str:
    """Return why a value, or a field inside it, is not of its type; "" if all types are right.

    Why: msgspec does not check what a constructor gets, and nodes may come from other packages.
    `kind`: the expected type, of those that fields of nodes have.
    """
    origin, options = get_origin(kind), get_args(kind)
    parts: list[tuple[Any, Any]] = []  # the values inside, each with its type
    if origin is UnionType:
        fits = any(not unfit(value, option) for option in options)
    elif origin is Literal:
        fits = value in options
    elif origin is tuple:
        fits = isinstance(value, tuple)
        # every tuple in a node holds any number of items of one type
        parts = [(item, options[0]) for item in value] if fits else []
    elif isinstance(value, Node):
        # a subclass of a node is refused: it could compute its fields anew after this check
        fits = kind is Any or (isinstance(value, kind) and type(value).__module__ == __name__)
        types = _field_types(type(value)) if fits and kind is not Any else {}
        parts = [(getattr(value, name), expected) for name, expected in types.items()]
    else:
        fits = kind is Any or isinstance(value, (int, float) if kind is float else kind)
    if not fits:
        return f"{type(value).__name__} in place of {getattr(kind, '__name__', kind)}"
    return next(filter(None, (unfit(part, expected) for part, expected in parts)), "")


_field_types = cache(get_type_hints)  # of a class of nodes
