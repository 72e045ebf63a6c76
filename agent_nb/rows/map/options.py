"""The options of a map: concurrency, rate limit, handling of errors, number of rows and repeats."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from ...errors import UsageError, unknown_name
from ...wire import plain_value

OnError = Literal["keep", "raise"]


class MapOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a map, as `Agent.map` documents them; unchecked until `checked` is called.

    `rpm`: None: as configured. `repeats`: how often each row is asked.
    """

    concurrency: int = 10
    rpm: int | None = None
    on_error: OnError = "keep"
    limit: int | None = None
    repeats: int = 1

    def checked(self) -> MapOptions:
        """Return these options with built-in values. Raises UsageError for an unusable one."""
        # values of numpy and the like, as a cell computes them, become built-in ones
        options = MapOptions(**plain_value(msgspec.structs.asdict(self)))
        for name in ("concurrency", "rpm", "limit", "repeats"):
            value = getattr(options, name)
            # a bool is an int in Python, but `limit=True` is a mistake
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if value is not None and not (is_whole and value >= 1):
                raise UsageError(f"{name}={value!r}: give a whole number of at least 1.")
        if options.on_error not in get_args(OnError):
            raise UsageError(unknown_name("on_error", options.on_error, get_args(OnError)))
        return options
