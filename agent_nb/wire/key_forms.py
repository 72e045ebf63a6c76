"""What counts as a key: forms of providers' keys, secret variables, and how values are written.

A key that no variable holds, such as one in a cell, is known by its form alone.

Rule: a variable is secret if the last word of its name (digits aside) is one of `_KEY_WORDS` and
its value is long enough, except credentials and a `PWD` that begin as a path or end with `.json`.
From a command more is withheld (`wide`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from urllib.parse import quote, quote_plus, unquote

import msgspec

SHORTEST_VALUE = 12  # characters of a secret value; a shorter one would be found in ordinary text
# the password in an address, which may stand anywhere in a text and hold "@" and ":"
_PASSWORD = re.compile(r"\w://[^/?#\s:]*:([^/?#\s]+)@")
# words of the names of secret variables; `PWD`, `MONKEY` and `COMPASS` alone are none
_KEY_WORDS = (
    r"[A-Z0-9]*(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL)S?|(?:DB|SSH)?PASS|(?<=_)PWD"
    r"|(?:[A-Z0-9]*(?:API|ACCESS|ACCOUNT|AUTH|ENCRYPTION|MASTER|PRIVATE|SECRET|SIGNING|SSH))?KEYS?"
    r"|PAT"
)
# parts of the names of variables that give access, although their value may be an ordinary text;
# words may be joined, as in `dbConnectionString`
_ACCESS_PARTS = (
    r"(?<!MON)KEY(?!BOARD)|TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH(?!ORS?(?![A-Z]))"
    r"|COOKIE|(?<![A-Z0-9])DSN|CONNECTION_?STRING|SIGNATURE|SESSION_?ID"
)
_find_last_word = re.compile(rf"(?<![A-Z0-9])(?:{_KEY_WORDS})(?=[^A-Z]*\Z)").search
_find_part = re.compile(rf"(?<![A-Z0-9])(?:{_KEY_WORDS})\d*(?![A-Z0-9])|{_ACCESS_PARTS}").search
_is_path = re.compile(r"[/~.]|[A-Za-z]:[\\/]|\\\\|.*\.json\Z").match


class Pattern(msgspec.Struct, frozen=True):
    """The form of a key: one of `starts`, then at least `shortest` of `chars`.

    `mixed`: what follows the start has a capital or digit, or is twice as long as `shortest`.
    """

    name: str
    starts: tuple[str, ...]
    shortest: int
    chars: str = r"A-Za-z0-9_\-"
    mixed: bool = False
    keeps_start: bool = False  # the start is not part of the secret


_ALNUM, _WORD, _BASE64 = "A-Za-z0-9", "A-Za-z0-9_", r"A-Za-z0-9_\-.~+/="
# the first pattern that fits counts: `sk-ant-` before `sk-`
PATTERNS = (
    Pattern("API key", ("sk-ant-", "sk-proj-", "sk-or-"), 10),
    Pattern("API key", ("sk-",), 16, mixed=True),
    Pattern("API key", ("gsk_", "xai-", "pplx-", "nvapi-", "csk-", "r8_", "tgp_v1_", "lsv2_"), 16),
    Pattern("API key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"), 16),
    Pattern("API key", ("dop_v1_", "shpat_", "lin_api_"), 16),
    Pattern("Google key", ("AIza",), 30),
    Pattern("Google token", ("ya29.",), 20, r"A-Za-z0-9_\-."),
    Pattern("Hugging Face token", ("hf_",), 16, _ALNUM),
    Pattern("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), 16, _WORD),
    Pattern("GitLab token", ("glpat-",), 16),
    Pattern("Slack token", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"), 10),
    Pattern("AWS key", ("AKIA", "ASIA"), 16, "A-Z0-9"),
    Pattern("package token", ("pypi-", "npm_"), 30),
    Pattern("SendGrid key", ("SG.",), 20, r"A-Za-z0-9_\-."),
    Pattern("token", ("Bearer ", "bearer ", "Basic "), 16, _BASE64, mixed=True, keeps_start=True),
)


def environment_secrets(env: Mapping[str, str], *, wide: bool = False) -> dict[str, str]:
    """Return the secrets of `env` by variable; `wide`: those that are withheld from a command."""
    return dict(_find_secrets(tuple(env.items()), wide))


@lru_cache(maxsize=8)  # each cell asks several times, and the environment seldom changes
def _find_secrets(variables: tuple[tuple[str, str], ...], wide: bool) -> dict[str, str]:
    secrets = {name: value for name, value in variables if _is_secret(name, value, wide)}
    for name, value in variables:
        for number, password in enumerate(_PASSWORD.findall(value), 1):
            label = name if number == 1 else f"{name} ({number})"
            secrets |= {f"password in {label}": password, f"password of {label}": unquote(password)}
    shortest = 1 if wide else SHORTEST_VALUE
    return {name: value for name, value in secrets.items() if len(value) >= shortest}


def _is_secret(name: str, value: str, wide: bool) -> bool:
    """Return whether a variable is secret by its name, except credentials that are a path."""
    word = (_find_part if wide else _find_last_word)(name.upper())
    # GOOGLE_APPLICATION_CREDENTIALS and similar variables name a file
    may_be_path = word and not wide and ("CREDENTIAL" in word[0] or word[0] == "PWD")
    return bool(word) and not (may_be_path and _is_path(value))


def list_written_forms(value: str) -> set[str]:
    """Return the written forms of a value.

    It may be written as it is, in HTML, in an address, or in Python's `repr`, as in error messages;
    and each of these also in a JSON string, or in JSON within JSON.
    """
    # whether repr escapes a quote depends on the text around it, so both ways are listed
    parts = [repr(part)[1:-1] for part in value.split("'")]
    forms = {value, escape(value), escape(value, quote=False), "'".join(parts), "\\'".join(parts)}
    # in a query, with `+` for a space; in a path; as a browser writes it
    forms.add(quote_plus(value, errors="replace"))
    forms |= {quote(value, safe, errors="replace") for safe in ("", "/", "!'()*")}
    for _ in range(2):
        forms |= {
            json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            for text in forms
            for ascii_only in (True, False)
        }
    return forms
