"""Nodes → ipywidgets, changing only what changed.

Why: the live view is redrawn many times a second; a widget that is made anew loses its place, its focus and whether it was open.

How: each node that moves has a slot that holds its widgets and takes the next node of its kind; neighbours that stand still share one
HTML widget. A growing text is a few HTML widgets of finished parts and one for its open end, so that only the end is sent again.

Rules: this is the only file that imports ipywidgets; `HTML.value` is raw, so every value comes from `html` or `markdown`; layouts and
styles are shared (each would be a message and a model of its own); one thread paints. `sent` counts the messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ipywidgets as w
from ipywidgets.widgets.widget_string import HTMLMathStyle, HTMLStyle

from . import html, look, nodes
from .markdown import stream_of
from .nodes import Node
from .sheet import compact, css

RECENT = 5_000  # characters of finished HTML that are sent again with the open end
SHORT = 300  # characters of an open end that is no more than a line or two
CHUNKS = 48  # in long answers more of them, so that their widgets are not many more than that
_FORMULA = re.compile(r"\$(?!</span>)[^$]+\$|\\[(\[]")
Press = Callable[[nodes.Button], None]


class Kit:
    """Makes widgets and changes them, counting messages; owns what all of them share."""

    def __init__(self, press: Press) -> None:
        self.press = press
        self.sent = 0
        self.layout = w.Layout()
        self.style = HTMLStyle()
        self.maths = HTMLMathStyle()
        self.editors: dict[str, Any] = {}
        self._retired: list[Any] = []

    def html(self, value: str, *classes: str) -> Any:
        """Return a new HTML widget; one with formulas in it has them typeset where the front end can."""
        self.sent += 1
        if has_formula(value):
            return w.HTMLMath(value, layout=self.layout, style=self.maths, _dom_classes=classes)
        return w.HTML(value, layout=self.layout, style=self.style, _dom_classes=classes)

    def box(self, children: list[Any], *classes: str, across: bool = False) -> Any:
        """Return a new box."""
        self.sent += 1
        return (w.HBox if across else w.VBox)(children, layout=self.layout, _dom_classes=classes)

    def set(self, widget: Any, name: str, value: Any) -> None:
        """Set a trait if it differs."""
        if getattr(widget, name) != value:
            self.sent += 1
            setattr(widget, name, value)

    def retire(self, widgets: list[Any]) -> None:
        """Close widgets when the paint is over: until then somebody still shows them."""
        self._retired.extend(widgets)

    def sweep(self) -> None:
        """Close what was retired."""
        for widget in self._retired:
            self.close(widget)
        self._retired.clear()

    def close(self, widget: Any) -> None:
        """Close a widget and all below it, but not what is shared."""
        for child in getattr(widget, "children", ()):
            self.close(child)
        style = getattr(widget, "style", self.style)
        if style not in (self.style, self.maths):
            style.close()
        self.sent += 1
        widget.close()


class Slot:
    """The widgets of one node that may change; `widgets` are in order."""

    classes: tuple[str, ...] = ()

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        self.widgets: list[Any] = []
        self._shown: Any = None

    def show(self, node: Any) -> None:
        """Show `node`, of the same kind as before, unless it is the very one that is shown."""
        if node is not self._shown:
            self._shown = node
            self.update(node)

    def update(self, node: Any) -> None:
        """Make or change the widgets so that they show `node`."""

    def close(self) -> None:
        """Give the widgets up."""
        self.kit.retire(self.widgets)


class Still(Slot):
    """Nodes that stand still, in one HTML widget."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._nodes: tuple[Node, ...] = ()

    def update(self, node: Any) -> None:
        """Show a tuple of nodes."""
        if self.widgets and self._nodes == node:
            return
        self._nodes = node
        value = html.drawn(node)
        if self.widgets:
            self.kit.set(self.widgets[0], "value", value)
        else:
            self.widgets = [self.kit.html(value)]


class Several(Slot):
    """Nodes below one another: the moving ones have slots, the others are gathered."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._slots: dict[object, Slot] = {}

    def parts(self, node: Any) -> list[tuple[object, Any]]:
        """Return (key, node or tuple of still nodes) in order."""
        out: list[tuple[object, Any]] = []
        gathered: list[Node] = []
        for child in _flat(node.children):
            if not moves(child):
                gathered.append(child)
                continue
            if gathered:
                out.append(((len(out), "still"), tuple(gathered)))
                gathered = []
            out.append(((len(out), type(child)), child))
        return [*out, *([((len(out), "still"), tuple(gathered))] if gathered else [])]

    def update(self, node: Any) -> None:
        """Show the children, keeping the slots whose key is still there."""
        children = self.below(node)
        if not self.widgets:
            self.widgets = [self.kit.box(children, *self.classes)]
        self.kit.set(self.widgets[0], "children", tuple(children))

    def below(self, node: Any) -> list[Any]:
        """Return the widgets of the children as they are to be shown now."""
        slots: dict[object, Slot] = {}
        for key, part in self.parts(node):
            slot = self._slots.get(key) or (Still(self.kit) if isinstance(part, tuple) else make(part, self.kit))
            slot.show(part)
            slots[key] = slot
        for key, slot in self._slots.items():
            if key not in slots:
                slot.close()
        self._slots = slots
        return [widget for slot in slots.values() for widget in slot.widgets]


class Panel(Several):
    """Steps by key; a step that stops moving is shown by one HTML widget from then on."""

    classes = ("agent-nb-panel",)

    def parts(self, node: Any) -> list[tuple[object, Any]]:
        """Return the steps."""
        return [((step.key, "step"), step) for step in node.steps]


class Step(Slot):
    """One row of a panel."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._slot: Slot | None = None
        self._kind: object = None

    def update(self, node: Any) -> None:
        """Show the step; its widget changes when it begins or ceases to move."""
        kind: object = type(node.child) if moves(node.child) else "still"
        if kind != self._kind or self._slot is None:
            if self._slot is not None:
                self._slot.close()
            self._slot = make(node.child, self.kit) if kind != "still" else Still(self.kit)
            self._kind = kind
        self._slot.show((node.child,) if kind == "still" else node.child)
        self.widgets = self._slot.widgets
        tint = (f"agent-nb-{node.tone}",) if node.tone else ()
        self.kit.set(self.widgets[0], "_dom_classes", (*self._slot.classes, *tint))


class Thought(Slot):
    """A fold as an Accordion: open while it grows, closed when it is done, left alone after that."""

    classes = ("agent-nb-thought",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._body = Several(kit)
        self._open: bool | None = None

    def update(self, node: Any) -> None:
        """Show the fold; whether it is open is only set when that changed in the node, so that a reader's click stays."""
        self._body.show(nodes.Stack(node.body))
        if not self.widgets:
            self.kit.sent += 1
            inner = self.kit.box(self._body.widgets, "agent-nb-scroll")
            index = 0 if node.open else None
            self.widgets = [
                w.Accordion([inner], titles=(node.title,), selected_index=index, layout=self.kit.layout, _dom_classes=self.classes)
            ]
        self.kit.set(self.widgets[0], "titles", (node.title,))
        if self._open is not None and self._open != node.open:
            self.kit.set(self.widgets[0], "selected_index", 0 if node.open else None)
        self._open = node.open


class Prose(Slot):
    """A growing markdown text: widgets of finished parts, then one with what is recent and open.

    When there is much of it, the last widget keeps what is finished and a new one goes on: were text moved from one to the other, it
    would be seen twice, or not at all, for a moment.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._chunks: list[str] = []  # the finished parts in each widget but the last
        self._placed = 0  # finished parts in them

    def update(self, node: Any) -> None:
        """Show what is new."""
        stream = stream_of(node.text, closed=not node.open)
        tail = compact(stream.tail(caret=True)) if node.open else ""
        if not self.widgets:
            self._begin(node)
        recent = compact("".join(stream.frozen[self._placed :]))
        if self._enough(recent, tail) or (not node.open and has_formula(recent)):
            self._chunks.append(recent)
            self._placed, recent = len(stream.frozen), ""
            self._go_on(tail)
        if not node.open and "".join(self._chunks) + recent != (whole := compact("".join(stream.frozen))):
            self._again(whole)  # a link was defined below a part that refers to it
        else:
            self.kit.set(self._end, "value", self._wrapped(recent + tail))

    def _enough(self, recent: str, tail: str) -> bool:
        """Return whether to go on in a new widget: there is much, and little that is open, for that is seen twice for a moment."""
        much = max(RECENT, sum(map(len, self._chunks)) // CHUNKS)
        return len(recent) > (much if len(tail) < SHORT else 2 * much)

    def _begin(self, node: nodes.Prose) -> None:
        self._css = look.THOUGHT + ";" + look.ink("muted") if node.dim else look.ANSWER.replace("8px 0 2px", "0")
        self._end = self.kit.html("")
        self.widgets = [self.kit.box([self._end], "agent-nb-prose")]

    def _wrapped(self, inner: str) -> str:
        return f'<div style="{self._css}">{inner}</div>' if inner else ""

    def _go_on(self, tail: str) -> None:
        """Leave the newest chunk to the last widget (or to one that typesets its formulas) and open a new one with `tail`."""
        box, done, value = self.widgets[0], self._end, self._wrapped(self._chunks[-1])
        self._end = self.kit.html(self._wrapped(tail))
        kept = self.kit.html(value) if has_formula(value) else done
        self.kit.set(box, "children", (*box.children[:-1], kept, self._end))
        if kept is done:
            self.kit.set(done, "value", value)
        else:
            self.kit.retire([done])

    def _again(self, whole: str) -> None:
        """Show a closed text anew in one widget."""
        old = list(self.widgets[0].children)
        self._end = self.kit.html(self._wrapped(whole))
        self.kit.set(self.widgets[0], "children", (self._end,))
        self.kit.retire(old)


class Bar(Slot):
    """A progress bar; its words are in the still part below it."""

    def update(self, node: Any) -> None:
        """Move the bar."""
        value = round(max(0.0, min(1.0, node.fraction or 0.0)), 3)
        if not self.widgets:
            self.kit.sent += 2
            self.widgets = [w.FloatProgress(value=value, min=0.0, max=1.0, layout=self.kit.layout, tooltip=node.name)]
        self.kit.set(self.widgets[0], "value", value)


class Buttons(Slot):
    """A row of buttons, kept as they are while their labels and states change."""

    classes = ("agent-nb-buttons",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._made: dict[str, Any] = {}
        self._nodes: dict[str, nodes.Button] = {}

    def update(self, node: Any) -> None:
        """Show the buttons."""
        made = {b.key: self._button(b) for b in node.children}
        gone = [b for key, b in self._made.items() if key not in made]
        self._made = made
        if not self.widgets:
            self.widgets = [self.kit.box(list(made.values()), *self.classes, across=True)]
        self.kit.set(self.widgets[0], "children", tuple(made.values()))
        self.kit.retire(gone)

    def _button(self, node: nodes.Button) -> Any:
        made = self._made.get(node.key)
        self._nodes[node.key] = node
        if made is None:
            self.kit.sent += 2
            styles = {"ok": "success", "bad": "danger"}
            made = w.Button(description=node.label, disabled=not node.enabled, tooltip=node.hint, layout=self.kit.layout)
            made.button_style = styles.get(node.tone, "")
            heard = _beside_the_cell(made)
            made.on_click(lambda _: (heard(), self.kit.press(self._nodes[node.key])))
        self.kit.set(made, "description", node.label)
        self.kit.set(made, "disabled", not node.enabled)
        return made


class Head(Slot):
    """The header: a line and its buttons."""

    classes = ("agent-nb-head",)

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._buttons = Buttons(kit)

    def update(self, node: Any) -> None:
        """Show the row; its HTML is compared, since it is made anew with every event."""
        value = html.draw(node)
        if not self.widgets:
            self._end = self.kit.html(value)
            self._buttons.update(nodes.Buttons(node.buttons))
            self.widgets = [self.kit.box([self._end, *self._buttons.widgets], *self.classes, across=True)]
        self.kit.set(self._end, "value", value)
        self._buttons.update(nodes.Buttons(node.buttons))


class Editor(Slot):
    """A text area with the arguments of a call."""

    def update(self, node: Any) -> None:
        """Show the text once; what is typed stays. The note says what is wrong with it."""
        if not self.widgets:
            self.kit.sent += 2
            rows = min(16, max(4, node.text.count("\n") + 2))
            # Sent when it loses the focus, so always before the press of a button that reads it.
            area = w.Textarea(value=node.text, rows=rows, layout=self.kit.layout, continuous_update=False)
            heard = _beside_the_cell(area)
            area.observe(lambda _: heard(), "value")
            self._note = self.kit.html("")
            self.widgets = [area, self._note]
            self.kit.editors[node.call_id] = area
        said = html.draw(nodes.Row((nodes.T(node.note, tone="bad"),), wrap=True)) if node.note else ""
        self.kit.set(self._note, "value", said)


SLOTS: dict[type[Node], type[Slot]] = {
    nodes.Stack: Several,
    nodes.Box: Several,
    nodes.Panel: Panel,
    nodes.Step: Step,
    nodes.Fold: Thought,
    nodes.Prose: Prose,
    nodes.Bar: Bar,
    nodes.Buttons: Buttons,
    nodes.Editor: Editor,
    nodes.Row: Head,
}


def make(node: Node, kit: Kit) -> Slot:
    """Return an empty slot for a node that moves."""
    return SLOTS[type(node)](kit)


def has_formula(value: str) -> bool:
    """Return whether HTML of ours may hold TeX."""
    return bool(_FORMULA.search(value))


def _beside_the_cell(widget: Any) -> Callable[[], None]:
    """Have the messages of a widget arrive in order while the cell works; call what is returned at each of them.

    - ipykernel 7.4 takes them to the thread that made the widget, busy or not; here they go the way the front end chose (a subshell).
    - It does not say that one has arrived beside a running cell, and the front end keeps the next change back until then.
    - On a subshell, 7.x gives what the user's plain threads print to the message from then on; here it stays with the cell.

    There are no public ways. Without kernel or subshells this does nothing.
    """
    kernel: Any = getattr(getattr(widget, "comm", None), "kernel", None)
    if not getattr(kernel, "_supports_kernel_subshells", False):
        return lambda: None
    cell = kernel.get_parent("shell")
    widget.comm._reply_subshell_for = None  # noqa: SLF001

    def heard() -> None:
        with suppress(Exception):
            kernel.shell.set_parent(cell)
            kernel._publish_status("idle", "shell")  # noqa: SLF001

    return heard


def moves(node: Node) -> bool:
    """Return whether a node needs widgets of its own in the live view."""
    if isinstance(node, nodes.Row):
        return bool(node.buttons)
    if isinstance(node, nodes.Fold):
        return node.accordion
    if isinstance(node, nodes.Prose):
        return bool(node.key)
    if isinstance(node, nodes.Stack | nodes.Box):
        return any(moves(child) for child in node.children)
    return isinstance(node, nodes.Panel | nodes.Step | nodes.Bar | nodes.Buttons | nodes.Editor)


def _flat(children: tuple[Node, ...]) -> list[Node]:
    """Return the children with the words of a bar as a part of their own, which stands still."""
    out: list[Node] = []
    for child in children:
        out.append(child)
        if isinstance(child, nodes.Bar):
            out.append(nodes.Row((nodes.T(child.label, tone="muted"),)))
    return out


class Board(Several):
    """A whole page as widgets. `root` is what is displayed."""

    classes = ("agent-nb",)

    def __init__(self, press: Press) -> None:
        super().__init__(Kit(press))
        self._style = self.kit.html(f"<style>{look.LIVE_CSS}\n{css()}</style>")
        self.widgets = [self.kit.box([self._style], *self.classes)]

    @property
    def root(self) -> Any:
        """The widget to display."""
        return self.widgets[0]

    def parts(self, node: Any) -> list[tuple[object, Any]]:
        """Return the sections by key."""
        return [((s.key, type(s.child) if moves(s.child) else "still"), s.child if moves(s.child) else (s.child,)) for s in node.sections]

    def draw(self, page: nodes.Page) -> int:
        """Show a page; return how many messages that took."""
        before = self.kit.sent
        self.kit.set(self.root, "children", (self._style, *self.below(page)))
        self.kit.sweep()
        return self.kit.sent - before

    def edited(self, call_id: str) -> str | None:
        """Return the text of the editor of a call, or None when it has none."""
        area = self.kit.editors.get(call_id)
        return None if area is None else str(area.value)

    def close(self) -> None:
        """Close every widget and what they share."""
        self.kit.close(self.root)
        self.kit.layout.close()
        self.kit.style.close()
        self.kit.maths.close()
