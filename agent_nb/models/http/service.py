"""The defaults of a provider behind HTTP: its own server, its variables, its key.

All providers behind HTTP take the same options and differ only in their defaults.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...host import DIVERTED
from ..keys import Key
from .client import check_url
from .remote import RemoteOptions

# options that a user may set (`Service.options`); `key_of` follows from them
_OPTIONS = frozenset(field.name for field in fields(RemoteOptions)) - {"key_of"}


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults of one provider.

    `official`: its own base URL; `variable`: the environment variable with another one, "" if none.
    `key_of`: the provider whose key it shares ("": its own). `keyed`: it also serves other
    providers under their own labels, which need a key if they are in `Key.VARIABLES`.
    """

    label: str
    official: str
    variable: str
    key_of: str = ""
    keyed: bool = False

    def options(self, **options: Any) -> RemoteOptions:
        """Return a model's `RemoteOptions`: the user's options over the defaults of this provider.

        `options`: fields of `RemoteOptions` without `key_of`; unknown ones are ignored. Raises
        UsageError for an invalid URL.
        """
        # None stands for the default; for the label and the URL, so does ""
        known = {name: value for name, value in options.items() if name in _OPTIONS}
        label = known.get("label") or self.label
        url = known.get("base_url") or DIVERTED.read_original(self.variable) or self.official
        key_of = (self.key_of if label == self.label else "") or label
        if known.get("variables") is None:
            known["variables"] = Key.VARIABLES.get(key_of, ())
        if known.get("needs_key") is None:
            if self.keyed and label != self.label:
                known["needs_key"] = label in Key.VARIABLES
            else:  # the provider's own server needs a key; a compatible one elsewhere may not
                host = urlsplit(check_url(url)).netloc
                known["needs_key"] = host == urlsplit(self.official).netloc
        return RemoteOptions(**{**known, "base_url": url, "label": label, "key_of": key_of})
