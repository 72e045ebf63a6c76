"""The model of an agent: its name as the user gave it, and the model itself, looked up on first
use.

Why late: a replay needs neither the model nor a key.

Rules
- A name may also be that of a model object in the namespace.
- An unknown name raises UsageError. Its message is redacted: the name may be a key in the wrong
  place.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import AgentError
from ..models import offline
from ..wire.redact import redact_value

if TYPE_CHECKING:
    from typing import Any

    from ..models.base import Model

SCRIPTED = "scripted/"  # models of this provider are text files beside the notebook


class ModelChoice:
    """One choice of a model.

    `asked`: its name as the user gave it ("": the environment chooses). `source`: where the choice
    came from ("" until the model is used).
    """

    def __init__(
        self,
        model: Model | str | None,
        namespace: Mapping[str, Any],
        folder: str,
        source: str = "",
    ) -> None:
        self._given, self._namespace, self._folder = model, namespace, folder
        self._model: Model | None = None
        variable = self._variable()
        found = model if variable is None else variable
        self.asked = (
            (found or "").strip()
            if found is None or isinstance(found, str)
            else str(getattr(found, "identity", found.name))
        )
        self.source = source

    @property
    def model(self) -> Model:
        """The model. Raises UsageError when there is none of that name."""
        if self._model is None:
            self._model, source = self._find()
            self.source = self.source or source
        return self._model

    @property
    def identity(self) -> str:
        """The model as an input of a run. For a script it includes a hash of its text, so that a
        changed script shows.
        """
        if self._model is None and self.asked.startswith(SCRIPTED):
            with suppress(AgentError):  # a replay needs no script
                return str(getattr(self.model, "identity", self.asked))
        return str(getattr(self._model, "identity", self.asked)) if self.asked else ""

    def is_script(self) -> bool:
        """Return whether the model is a script, which may run where nothing else is asked
        (`offline`).
        """
        with suppress(AgentError):
            return offline.is_script(self.model)
        return False

    async def aclose(self) -> None:
        """Close the model's connections, if it was needed."""
        if self._model is not None:
            await self._model.aclose()

    def _find(self) -> tuple[Model, str]:
        """Return the model and where the choice came from."""
        from ..models import keys
        from ..models.choose import resolve

        if (found := self._variable()) is not None:
            return found, f"the variable {self._given}"
        try:
            return resolve(self._given, folder=self._folder)
        except AgentError as fault:
            fault.args = tuple(redact_value(fault.args, keys.secrets()))
            raise

    def _variable(self) -> Model | None:
        """Return the model object of that name in the namespace, as it is now."""
        found: Model | None = (
            self._namespace.get(self._given) if isinstance(self._given, str) else None
        )
        return found if hasattr(found, "stream") else None
