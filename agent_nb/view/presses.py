"""Pressed buttons and edited arguments: the part of the view's state that is in no log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .nodes import Button

#: `actions(action, payload)`, or action → function of the payload (of nothing, if that is None).
Actions = Callable[[str, Any], None] | Mapping[str, Callable[..., None]]


class Presses:
    """Takes presses and passes them on to `actions`.

    `edited(call_id)` returns the text of the editor of a call; `nudge` asks for a paint.
    """

    def __init__(
        self, actions: Actions, edited: Callable[[str], str | None], nudge: Callable[[], None]
    ) -> None:
        self._actions = actions
        self._edited = edited
        self._nudge = nudge
        # the fields below become those of `cards.base.Context`
        self.pressed: set[str] = set()  # keys of buttons that can be pressed once
        self.editing: set[str] = set()  # ids of calls whose arguments are being edited
        self.notes: dict[str, str] = {}  # id of a call: why its arguments cannot be submitted
        self.folds: dict[str, tuple[bool, float]] = {}  # what the reader opened or closed
        self.chosen = ""  # key of the button of the cell that will be inserted
        self.inserting = isinstance(actions, Mapping) and "insert" in actions
        self.lasting = isinstance(actions, Mapping) and "approve_lasting" in actions

    def press(self, button: Button) -> None:
        """Take a press, perhaps on another thread than that of the renderer."""
        call_id = button.payload.get("call_id", "") if isinstance(button.payload, dict) else ""
        if button.action == "edit":
            self.editing.add(call_id)
        elif button.action == "unedit":
            self.editing.discard(call_id)
            self.notes.pop(call_id, None)
        elif button.action == "submit":
            self._submit(button, call_id)
        elif button.action == "fold":
            if key := button.payload["key"]:
                self.folds[key] = (button.payload["open"], 0)
        elif button.action == "insert":
            self._choose(button)
        elif button.key not in self.pressed:
            self.pressed.add(button.key)
            action = "approve" if button.action == "approve_all" else button.action
            self._act(action, button.payload)
        self._nudge()

    def _act(self, action: str, payload: Any) -> None:
        if not isinstance(self._actions, Mapping):
            self._actions(action, payload)
        elif action in self._actions:
            handler = self._actions[action]
            handler() if payload is None else handler(payload)

    def _choose(self, button: Button) -> None:
        """Choose the cell to insert, instead of any other; a second press withdraws it."""
        withdrawn = self.chosen == button.key
        self.chosen = "" if withdrawn else button.key
        self._act("insert", "" if withdrawn else button.payload["code"])

    def _submit(self, button: Button, call_id: str) -> None:
        """Approve with edited arguments, if they are a JSON object."""
        try:
            args = json.loads(self._edited(call_id) or "")
        except ValueError as fault:
            self.notes[call_id] = f"This is not JSON: {fault}."
            return
        if not isinstance(args, dict):
            self.notes[call_id] = "Arguments are a JSON object: {…}."
            return
        self.notes.pop(call_id, None)
        self.pressed.add(button.key)
        self._act("approve", {**button.payload, "scope": "once", "args": args})
