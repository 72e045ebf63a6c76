"""The defaults of a provider behind HTTP: its own server, its variables, its key.

Why: these providers take the same options and differ only in their defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..keys import VARIABLES
from ..prices import Prices
from ..timeouts import Timeouts


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults of one provider.

    `official` is its own base URL, `variable` the environment variable with another one,
    `key_of` the provider whose key it shares ("": its own). `keyed`: a model under the label of
    another provider with keys needs that key.
    """

    label: str
    official: str
    variable: str
    key_of: str = ""
    keyed: bool = False

    def options(
        self,
        *,
        base_url: str = "",
        label: str = "",
        variables: Sequence[str] | None = None,
        needs_key: bool | None = None,
        headers: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        dialect: str = "",
        context: int = 0,
        prices: Mapping[str, Prices] | None = None,
        cache: bool = True,
        vision: bool | None = None,
        rpm: int = 0,
        concurrency: int = 0,
        **_: Any,
    ) -> dict[str, Any]:
        """Return the keyword arguments of `Remote` for a model's options; ignore unknown ones."""
        label = label or self.label
        url = base_url or os.environ.get(self.variable or "", "") or self.official
        key_of = (self.key_of if label == self.label else "") or label
        if variables is None:
            variables = VARIABLES.get(key_of, ())
        if needs_key is None:
            foreign = self.keyed and label != self.label
            needs_key = (
                label in VARIABLES if foreign else f"//{urlsplit(self.official).netloc}" in url
            )
        return {
            "base_url": url,
            "label": label,
            "key_of": key_of,
            "variables": variables,
            "needs_key": needs_key,
            "headers": headers,
            "timeouts": timeouts,
            "dialect": dialect,
            "context": context,
            "prices": prices,
            "cache": cache,
            "vision": vision,
            "rpm": rpm,
            "concurrency": concurrency,
        }
