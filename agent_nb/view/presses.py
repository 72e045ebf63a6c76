"""Pressed buttons and typed fields: the part of the view's state that is in no log.

Why: until the run answers, the page itself must show that a press was taken. `edit`, `refuse` and
`always` open controls, and `back` closes them; any other button of a question, and Stop, works
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .fields import CALL, LONGEST_REASON, REASON, read_fields
from .nodes import Button, Field

#: `actions(action, payload)`, or action → function (of the payload, unless that is None).
Actions = Callable[[str, Any], None] | Mapping[str, Callable[..., Any]]
OPENING = ("edit", "refuse", "always")  # buttons that open controls instead of answering
SCOPED = ("approve_same", "approve_all")  # approvals whose payload has a scope


class Presses:
    """Takes presses and passes them on to `actions`.

    `typed(about)` returns the fields of the question `about` with their values; `nudge` asks for a
    paint. The other public attributes become those of `cards.base.Context`.
    """

    def __init__(
        self,
        actions: Actions,
        typed: Callable[[str], list[tuple[Field, Any]]],
        nudge: Callable[[], None],
    ) -> None:
        self._actions = actions
        self._typed = typed
        self._nudge = nudge
        # the fields below become those of `cards.base.Context`
        self.pressed: set[str] = set()  # keys of pressed buttons, of those that work once
        self.opened: dict[str, str] = {}  # question (`Button.about`) → the action that opened it
        self.schemas: dict[str, Any] = {}  # question → the schema of its arguments
        self.faults: dict[str, dict[str, str]] = {}  # question → name of a field → its fault
        self.folds: dict[str, tuple[bool, float]] = {}  # key of a card → the reader's choice
        self.chosen = ""  # key of the button of the cell that will be inserted
        self.inserting = isinstance(actions, Mapping) and "insert" in actions
        self.lasting = isinstance(actions, Mapping) and "approve_lasting" in actions
        self._checks: dict[str, Callable[[dict[str, Any]], str]] = {}

    def press(self, button: Button) -> None:
        """Take a press; it may come on another thread than the renderer's."""
        about = button.about
        if button.action in OPENING:
            self._describe(about, button.payload)
            self.opened[about] = button.action
        elif button.action == "back":
            self._close(about)
        elif button.action == "submit":
            self._submit(button, about)
        elif button.action == "fold":
            if key := button.payload["key"]:
                self.folds[key] = (button.payload["open"], 0)
        elif button.action == "insert":
            self._choose(button)
        elif button.key not in self.pressed:
            self.pressed.add(button.key)
            action = "approve" if button.action in SCOPED else button.action
            reason = self._read_reason(about) if action == "deny" else {}
            self._act(action, {**button.payload, **reason} if reason else button.payload)
        self._nudge()

    def _act(self, action: str, payload: Any) -> Any:
        if not isinstance(self._actions, Mapping):
            return self._actions(action, payload)
        handler = self._actions.get(action)
        if handler is None:
            return None
        return handler() if payload is None else handler(payload)

    def _describe(self, about: str, payload: Any) -> None:
        """Note the schema of a call's arguments and the function that checks them, if known."""
        if isinstance(self._actions, Mapping) and (described := self._act("describe", payload)):
            self.schemas[about], self._checks[about] = described

    def _close(self, about: str) -> None:
        self.opened.pop(about, None)
        self.faults.pop(about, None)

    def restart(self) -> None:
        """Forget the presses in the old view: another one replaces it."""
        by_question = (self.opened, self.schemas, self.faults, self._checks)
        for state in (self.pressed, self.folds, *by_question):
            state.clear()
        self.chosen = ""

    def _read_reason(self, about: str) -> dict[str, str]:
        """Return the typed reason of a denial, {} if none was typed."""
        reason = next((text for f, text in self._typed(about) if f.name == REASON), "")
        one_line = " ".join(str(reason).split())[:LONGEST_REASON]
        return {"reason": one_line} if one_line else {}

    def _choose(self, button: Button) -> None:
        """Choose the cell to insert, in place of one chosen before; a second press withdraws it."""
        withdrawn = self.chosen == button.key
        self.chosen = "" if withdrawn else button.key
        self._act("insert", "" if withdrawn else button.payload["code"])

    def _submit(self, button: Button, about: str) -> None:
        """Approve with edited arguments, if they can be read and the tool takes them."""
        if button.key in self.pressed:
            return
        args, faults = read_fields(self._typed(about))
        if not faults and (check := self._checks.get(about)) and (fault := check(args)):
            faults = {CALL: fault}
        if faults:
            self.faults[about] = faults
            return
        self.faults.pop(about, None)
        self.pressed.add(button.key)
        self._act("approve", {**button.payload, "scope": "once", "args": args})
