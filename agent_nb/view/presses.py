"""Pressed buttons and edited arguments: the part of the view's state that no log holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .nodes import Button

Actions = Callable[[str, Any], None] | Mapping[str, Callable[..., None]]


class Presses:
    """Takes presses and passes them on to `actions`.

    `typed(call_id)` returns the edited arguments of a call; `nudge` asks for a paint.
    """

    def __init__(
        self, actions: Actions, typed: Callable[[str], str | None], nudge: Callable[[], None]
    ) -> None:
        self._actions = actions
        self._typed = typed
        self._nudge = nudge
        self.pressed: set[str] = set()
        self.editing: set[str] = set()
        self.notes: dict[str, str] = {}
        self.chosen = ""
        self.inserting = isinstance(actions, Mapping) and "insert" in actions
        self.lasting = isinstance(actions, Mapping) and "approve_lasting" in actions

    def press(self, button: Button) -> None:
        """Take a press. The front end calls this, perhaps on another thread."""
        call_id = button.payload.get("call_id", "") if isinstance(button.payload, dict) else ""
        if button.action == "edit":
            self.editing.add(call_id)
        elif button.action == "unedit":
            self.editing.discard(call_id)
            self.notes.pop(call_id, None)
        elif button.action == "submit":
            self._submit(button, call_id)
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
        """Choose a cell to insert, in the place of another one; a second press withdraws it."""
        withdrawn = self.chosen == button.key
        self.chosen = "" if withdrawn else button.key
        self._act("insert", "" if withdrawn else button.payload["code"])

    def _submit(self, button: Button, call_id: str) -> None:
        """Approve with edited arguments, if they are a JSON object."""
        try:
            args = json.loads(self._typed(call_id) or "")
        except ValueError as fault:
            self.notes[call_id] = f"This is not JSON: {fault}."
            return
        if not isinstance(args, dict):
            self.notes[call_id] = "Arguments are a JSON object: {…}."
            return
        self.notes.pop(call_id, None)
        self.pressed.add(button.key)
        self._act("approve", {**button.payload, "scope": "once", "args": args})
