"""The kit that makes and changes the widgets of one view.

Why: every change of a trait is a message, and every layout or style is a model of its own, which is
a message too. One place counts the messages and shares the models; code that makes a widget without
the kit adds to `sent`.

Rule: `HTML.value` is not sanitised, so every value comes from `draw.html` or `markdown`, or is ours
alone (`KEYS`, the style sheet).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import ipywidgets as w
from ipywidgets.widgets.widget_string import HTMLMathStyle, HTMLStyle

from ..nodes import Button, Node

Press = Callable[[Button], None]
# text between dollars, or an opener; a dollar that is text is alone in a span (`markdown.html`)
_FORMULA = re.compile(r"\$(?!</span>)[^$]+\$|\\(?:[(\[]|begin)")


class Kit:
    """Makes widgets and changes them; owns the models that they share.

    `press` takes the node of a pressed button. `slots`: node type → the slot that shows it.
    `editors`: question → its slot `Editor`, until that is dropped. `sent`: the number of messages
    so far.
    """

    def __init__(self, press: Press, slots: Mapping[type[Node], Callable[[Any], Any]]) -> None:
        self.press = press
        self.slots = slots
        self.sent = 0
        self.layout = w.Layout()
        self._styles: dict[type, Any] = {}  # by class
        self.editors: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._retired: list[Any] = []

    def shared_style(self, style_class: type) -> Any:
        """Return the one style of a class; made when it is first needed, since it is a message."""
        return self._styles.get(style_class) or self._styles.setdefault(style_class, style_class())

    def html(self, value: str, *classes: str, typeset: bool = False) -> Any:
        """Return a new HTML widget; `typeset`: the front end typesets it at each change."""
        self.sent += 1
        kind, style = (w.HTMLMath, HTMLMathStyle) if typeset else (w.HTML, HTMLStyle)
        style = self.shared_style(style)
        return kind(value, layout=self.layout, style=style, _dom_classes=classes)

    def box(self, children: list[Any], *classes: str, across: bool = False) -> Any:
        """Return a new box, with its children beside one another (`across`) or in a column."""
        self.sent += 1
        return (w.HBox if across else w.VBox)(children, layout=self.layout, _dom_classes=classes)

    def set(self, widget: Any, name: str, value: Any) -> None:
        """Set a trait, unless it has the value already."""
        if getattr(widget, name) != value:
            self.sent += 1
            setattr(widget, name, value)

    def retire(self, widgets: list[Any]) -> None:
        """Note widgets that `sweep` closes after the paint."""
        self._retired.extend(widgets)

    def sweep(self) -> None:
        """Close the retired widgets."""
        for widget in self._retired:
            self.close(widget)
        self._retired.clear()

    def close(self, widget: Any) -> None:
        """Close a widget and all below it, but not the shared models."""
        for child in getattr(widget, "children", ()):
            self.close(child)
        style = getattr(widget, "style", None)
        if style is not None and style not in self._styles.values():
            style.close()
        self.sent += 1
        widget.close()

    def close_shared(self) -> None:
        """Close the models that the widgets share."""
        for model in (self.layout, *self._styles.values()):
            model.close()


def has_formula(value: str) -> bool:
    """Return whether rendered markdown may hold TeX."""
    return bool(_FORMULA.search(value))
