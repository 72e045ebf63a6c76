"""Hide possible secrets in the entry of a server (`Server.mask`).

Why: a user who allows an entry must see all of it (`Server.describe`), but a list of servers stays
in the notebook and reaches everyone who gets the file.

Rule: in a text such as `run --token abc def` or `{"token": "abc"}`, everything after the name is
hidden: only a shell or the program knows where the value ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

HIDDEN = "***"
#: names of variables, headers and options whose values are hidden
SECRET = re.compile(
    r"(?i)authorization|cookie|key|token|secret|password|passwd|credential|bearer|auth$"
)
# after `://`: the user, which is dropped; host and path (group 1); query and fragment (group 2)
_ADDRESS = re.compile(r"(?<=://)(?:[^\s/?#]*@)?([^\s?#]*)([?#]\S*)?")
# a name before a value: `name=value`, `"name": value` (group 1), `--name value` (group 2)
_NAMED = re.compile(
    r"""(?<![\w.-])(?:([\w.-]++)(?:\\*["'])?\s?[=:]\s*(?=\S)|(-[\w.-]++)\s+(?=[^\s-]))"""
)
# the value behind such a name is a secret, unlike that of `--key-file`, `--max-tokens`, `--keymap`
_NAMES_VALUE = re.compile(
    r"(?i)(?:authorization|cookie|key|token|secret|password|passwd|credentials?|bearer|auth)$"
)
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token)\s+")  # of an `Authorization` header


def find_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the secrets among the arguments of a command, which stand behind their names.

    Stricter than `mask_arguments`, as these values are removed from every answer of the server: a
    name must end as that of a secret, and of a text with further words only the first is taken.
    """
    after_option = False
    for text in arguments:
        if after_option and not text.startswith("-"):
            yield text
        for named in _NAMED.finditer(text):
            if _NAMES_VALUE.search(named[1] or named[2]):
                value = _SCHEME.sub("", text[named.end() :].lstrip("\\\"'"), count=1)
                yield re.split(r"""[\s"'\\,}&]""", value, maxsplit=1)[0]
        after_option = text.startswith("-") and bool(_NAMES_VALUE.search(text))


def mask_arguments(arguments: Sequence[str], clean: Callable[[str], str]) -> Iterator[str]:
    """Yield the arguments of a command; the one after an option such as `--token` is hidden."""
    secret = False
    for text in arguments:
        option = text.startswith("-")
        # after `--token` comes its value, unless the next argument is an option too
        yield HIDDEN if secret and not option else mask_text(text, clean)
        secret = option and "=" not in text and bool(SECRET.search(text))


def mask_text(text: str, clean: Callable[[str], str]) -> str:
    """Return a command, argument, value or address with its secrets hidden."""
    shown = _ADDRESS.sub(lambda m: f"{m[1]}{m[2][0] + HIDDEN if m[2] else ''}", clean(text))
    named = next((m for m in _NAMED.finditer(shown) if SECRET.search(m[1] or m[2])), None)
    return f"{shown[: named.end()]}{HIDDEN}" if named else shown


def mask_values(values: Mapping[str, str], clean: Callable[[str], str]) -> dict[str, str]:
    """Return variables or headers; a value is hidden if its name speaks of a secret."""
    return {
        clean(name): HIDDEN if SECRET.search(name) else mask_text(value, clean)
        for name, value in values.items()
    }
