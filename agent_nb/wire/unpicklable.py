"""Objects that never leave the process: pickling one is an error that names what to send instead.

An agent, a model and a redaction hold keys. Dask and multiprocessing pickle whatever a function
refers to, and would carry the keys to another machine.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NoReturn, Self, SupportsIndex

from ..errors import UsageError


class Unpicklable:
    """The base of objects that hold keys; `_instead` names what to send in their place.

    Copying them works.
    """

    _instead = "Send names and plain values, and make the object where it is needed."

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise UsageError(
            f"This {type(self).__name__} cannot be pickled: it may hold keys. {self._instead}"
        )

    def __copy__(self) -> Self:
        copy = self.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def __deepcopy__(self, known: dict[int, Any]) -> Self:
        copy = known[id(self)] = self.__new__(type(self))
        copy.__dict__.update(deepcopy(self.__dict__, known))
        return copy
