"""The model of an agent: the name the user gave, and the model itself, resolved on first use.

A replay never uses it, and so needs neither the model nor a key. The message about an unknown name
is redacted, as the name may be a misplaced key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import AgentError, UsageError
from ..models import is_script
from ..wire import redact_value

if TYPE_CHECKING:
    from typing import Any

    from ..models import Model

SCRIPT_PREFIX = "scripted/"  # models of this provider are text files beside the notebook


class ModelChoice:
    """The choice of one model, or of several in order (`a,b`).

    The next model takes over if one is unreachable or overloaded. A name may also refer to a model
    object in the namespace. `requested`: the name the user gave ("": the environment chooses).
    `source`: where the choice came from, in words; without an argument, "" until the model is used.
    """

    def __init__(
        self,
        model: Model | str | Sequence[Model | str] | None,
        namespace: Mapping[str, Any],
        folder: str,
        source: str = "",
    ) -> None:
        self._choices = _split_choice(model)
        self._namespace, self._folder = namespace, folder
        self._models: tuple[Model, ...] = ()
        self._names = tuple(_input_name(self._find_variable(c) or c) for c in self._choices)
        self.requested = ",".join(self._names)
        self.source = source

    @property
    def model(self) -> Model:
        """The model that a run begins with. Raises UsageError if a name is unknown."""
        return self.models[0]

    @property
    def models(self) -> tuple[Model, ...]:
        """The models in order. Raises UsageError if a name is unknown."""
        if not self._models:
            self._models, source = self._resolve_all()
            self.source = self.source or source
        return self._models

    @property
    def identity(self) -> str:
        """The names of the models, an input of a run; a script's name has a hash of its text."""
        if not self._models and any(name.startswith(SCRIPT_PREFIX) for name in self._names):
            with suppress(AgentError):  # a replay needs no script
                assert self.models
        # if the environment chose the models, they have no names here: the identity is ""
        known = self._models or (None,) * len(self._names)
        return ",".join(
            str(getattr(model, "identity", name))
            for model, name in zip(known, self._names, strict=False)
        )

    @property
    def takes_tools(self) -> bool:
        """Whether the model is offered tools that the user did not choose.

        Raises UsageError if the name of the model is unknown.
        """
        return bool(getattr(self.model, "takes_tools", self.model.dialect == "native"))

    def make_portable_name(self) -> str:
        """Return the name that makes the same models in another process.

        Raises UsageError for a model object and for a script.
        """
        for choice in self._choices:
            name = _input_name(choice)
            if not isinstance(choice, str) or self._find_variable(choice) is not None:
                raise UsageError(
                    f"The model {name} is an object of this process, which cannot travel to workers. Give its name, provider/name, or map without client=."
                )
            if choice.startswith(SCRIPT_PREFIX):
                raise UsageError(
                    f"The script {name} is a file of this machine, which workers may not have. Map it without client=."
                )
        return ",".join(map(str, self._choices)) or ",".join(model.name for model in self.models)

    def is_script(self) -> bool:
        """Return whether every model is a script, which may run even offline."""
        with suppress(AgentError):
            return all(is_script(model) for model in self.models)
        return False

    async def aclose(self) -> None:
        """Close the connections of the models that were used."""
        endings = (model.aclose() for model in self._models)
        # even if one raises, the others are closed
        for fault in await asyncio.gather(*endings, return_exceptions=True):
            if isinstance(fault, BaseException):  # a custom model may return a value
                raise fault

    def _resolve_all(self) -> tuple[tuple[Model, ...], str]:
        """Return the models and where the choice came from."""
        from ..models import collect_secrets

        try:
            choices = [self._resolve_one(choice) for choice in self._choices or (None,)]
        except AgentError as fault:
            fault.args = tuple(redact_value(fault.args, collect_secrets()))
            raise
        return tuple(model for models, _ in choices for model in models), choices[0][1]

    def _resolve_one(self, choice: Model | str | None) -> tuple[Sequence[Model], str]:
        from ..models import resolve_all

        if (variable := self._find_variable(choice)) is not None:
            return (variable,), f"the variable {choice}"
        return resolve_all(choice, folder=self._folder)

    def _find_variable(self, choice: Model | str | None) -> Model | None:
        """Return the model object that has this name in the namespace now, or None."""
        value = self._namespace.get(choice) if isinstance(choice, str) else None
        return _check_model(value) if hasattr(value, "stream") else None


def _split_choice(model: Model | str | Sequence[Model | str] | None) -> tuple[Model | str, ...]:
    """Return the models of a choice in order; an empty tuple if the environment chooses."""
    if isinstance(model, str):
        return tuple(name.strip() for name in model.split(",") if name.strip())
    if isinstance(model, Sequence):
        return tuple(name_or_model for each in model for name_or_model in _split_choice(each))
    return () if model is None else (_check_model(model),)


def _check_model(model: Any) -> Model:
    """Return a model object. Raises UsageError for another one, such as the client of an SDK."""
    if not (hasattr(model, "stream") and hasattr(model, "dialect")):
        raise UsageError(
            f"{type(model).__module__}.{type(model).__qualname__} is not a model: give a name, provider/name, or an object with the attributes of agent_nb.models.base.Model. For the calls of an SDK's own client there is %agent tape."
        )
    checked: Model = model
    return checked


def _input_name(model: Model | str) -> str:
    """Return the name of one model as an input of a run."""
    return model if isinstance(model, str) else str(getattr(model, "identity", model.name))
