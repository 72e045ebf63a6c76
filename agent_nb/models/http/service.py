"""The defaults of a provider behind HTTP: its own server, its variables, its key.

Why: these providers take the same options and differ only in their defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ..keys import VARIABLES
from ..prices import Prices
from ..timeouts import Timeouts


@dataclass(frozen=True, kw_only=True, repr=False)  # a header may be a secret
class RemoteOptions:
    """How a model behind HTTP is asked.

    `label` is the provider as the user writes it, `key_of` the provider whose key it uses ("":
    `label`), `variables` where that key may be, `needs_key` whether it is required. `prices` are
    those of the endpoint, `cache` whether requests mark what the provider may cache, `vision`
    whether the model sees pictures (None: unknown), `rpm` and `concurrency` its limits
    (`limiter`). `dialect`: "" for that of the provider's class; `context`: tokens, 0 if unknown.
    """

    base_url: str
    label: str
    key_of: str = ""
    variables: Sequence[str] = ()
    needs_key: bool = False
    headers: Mapping[str, str] | None = None
    timeouts: Timeouts | None = None
    dialect: str = ""
    context: int = 0
    prices: Mapping[str, Prices] | None = None
    cache: bool = True
    vision: bool | None = None
    rpm: int = 0
    concurrency: int = 0


# what a user may set (`Service.options`); the others follow from it
_OPTIONS = frozenset(field.name for field in fields(RemoteOptions)) - {"key_of"}


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

    def options(self, **options: Any) -> RemoteOptions:
        """Return how a model is asked, from a user's options and the defaults of this provider.

        The options are the fields of `RemoteOptions` without `key_of`; unknown ones are ignored.
        """
        known = {name: value for name, value in options.items() if name in _OPTIONS}
        label = known.get("label") or self.label
        url = known.get("base_url") or os.environ.get(self.variable or "", "") or self.official
        key_of = (self.key_of if label == self.label else "") or label
        if known.get("variables") is None:
            known["variables"] = VARIABLES.get(key_of, ())
        if known.get("needs_key") is None:
            foreign = self.keyed and label != self.label
            known["needs_key"] = (
                label in VARIABLES if foreign else f"//{urlsplit(self.official).netloc}" in url
            )
        return RemoteOptions(**{**known, "base_url": url, "label": label, "key_of": key_of})
