"""Environment variables that point libraries elsewhere for a while, and what they held before.

Why: a tape, which records the model calls of other libraries, sets `OPENAI_BASE_URL` for them. Our
own models must still reach the server that the user named: otherwise each of their requests would
be recorded twice.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType


class Diverted:
    """The variables of this process that were set for other libraries.

    `secrets`: name of a secret -> its text, for secrets that are part of a value set here.
    """

    def __init__(self) -> None:
        self.secrets: Mapping[str, str] = {}
        self._values: dict[str, str] = {}  # as they were set
        self._before: dict[str, str | None] = {}  # what they held before; None: not set

    def divert(
        self, values: Mapping[str, str], secrets: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Set variables, and remember what they held; `secrets`: name -> text in these values."""
        self.secrets = {**self.secrets, **secrets}
        for name, value in values.items():
            # a second `divert` keeps what the user had set, not what the first one set
            self._before.setdefault(name, os.environ.get(name))
            self._values[name] = os.environ[name] = value

    def restore(self) -> None:
        """Give all variables back what they held; one that other code has set since stays."""
        for name, value in self._values.items():
            before = self._before[name]
            if os.environ.get(name) != value:
                continue
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before
        self._values, self._before, self.secrets = {}, {}, {}

    def read(self, name: str) -> str:
        """Return a variable as our own code sees it, "" if it is not set."""
        value = os.environ.get(name, "")
        if value and value == self._values.get(name):
            return self._before[name] or ""
        return value  # not diverted, or set by other code since

    def environment(self) -> dict[str, str]:
        """Return the environment as our own code sees it."""
        values = {name: self.read(name) for name in os.environ}
        # a diverted variable that was not set before is left out, not empty
        return {name: text for name, text in values.items() if text or name not in self._values}


DIVERTED = Diverted()
