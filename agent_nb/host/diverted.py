"""Environment variables that this process has set for other libraries, and their original values.

A tape, which records the model calls of other libraries, sets `OPENAI_BASE_URL` for them. Our own
models must still reach the server that the user named, or each of their requests would be recorded
twice. So our code reads variables that may be diverted with `read_original` or
`original_environment`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType


class DivertedEnvironment:
    """The variables of this process that were set for other libraries.

    `secrets`: name -> text of the secrets in the values set here, which our own runs redact.
    """

    def __init__(self) -> None:
        self.secrets: Mapping[str, str] = {}
        self._values: dict[str, str] = {}  # as they were set
        self._originals: dict[str, str | None] = {}  # None: the variable was not set

    def divert(
        self, values: Mapping[str, str], secrets: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Set variables, and remember their original values; `secrets`: see the class."""
        self.secrets = {**self.secrets, **secrets}
        for name, value in values.items():
            # a second `divert` keeps what the user had set, not what the first one set
            self._originals.setdefault(name, os.environ.get(name))
            self._values[name] = os.environ[name] = value

    def restore(self) -> None:
        """Restore the original values, except of variables that other code has changed since."""
        for name in [n for n, value in self._values.items() if os.environ.get(n) == value]:
            if (original := self._originals[name]) is None:
                del os.environ[name]
            else:
                os.environ[name] = original
        self._values, self._originals, self.secrets = {}, {}, {}

    def read_original(self, name: str) -> str:
        """Return a variable, the original value of a diverted one; "" if it is not set."""
        value = os.environ.get(name, "")
        if value and value == self._values.get(name):
            return self._originals[name] or ""
        return value  # not diverted, or set by other code since

    def original_environment(self) -> dict[str, str]:
        """Return all variables, with the original values of diverted ones."""
        values = {name: self.read_original(name) for name in os.environ}
        # a diverted variable that was not set before is left out, not empty
        return {name: text for name, text in values.items() if text or name not in self._values}


DIVERTED = DivertedEnvironment()  # one, since a process has one environment
