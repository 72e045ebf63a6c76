"""What counts as a key: forms of providers' keys, secret variables, and how values are written.

Why forms: a key that no variable holds, such as one in a cell, is known by its form alone.

Rules
- A variable is secret if the last word of its name (numbers aside) is in `WORDS` and its value is
  long enough, except credentials that are a path.
- The password in an address is secret wherever it stands in a variable, if it is long enough.
- A value may be written as it is, in HTML, or in Python's `repr`, as in error messages; and each of
  these also in a JSON string, or in JSON within JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from html import escape
from urllib.parse import unquote

import msgspec

SHORTEST_VALUE = 12  # characters of a secret value; a shorter one would be found in ordinary text
# the password in an address, which may stand anywhere in a text and hold "@" and ":"
_PASSWORD = re.compile(r"\w://[^/?#\s:]*:([^/?#\s]+)@")
# last words of the names of secret variables
WORDS = frozenset({
    "KEY", "KEYS", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL",
    "CREDENTIALS", "APIKEY", "PAT",
})  # fmt: skip


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


_ALNUM = "A-Za-z0-9"
# the first pattern that fits counts: `sk-ant-` before `sk-`
PATTERNS = (
    Pattern("API key", ("sk-ant-", "sk-proj-", "sk-or-"), 10),
    Pattern("API key", ("sk-",), 16, mixed=True),
    Pattern("API key", ("gsk_", "xai-", "pplx-", "nvapi-", "csk-", "r8_", "tgp_v1_", "lsv2_"), 16),
    Pattern(
        "API key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "dop_v1_", "shpat_", "lin_api_"),
        16,
    ),
    Pattern("Google key", ("AIza",), 30),
    Pattern("Google token", ("ya29.",), 20, r"A-Za-z0-9_\-."),
    Pattern("Hugging Face token", ("hf_",), 16, _ALNUM),
    Pattern(
        "GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), 16, "A-Za-z0-9_"
    ),
    Pattern("GitLab token", ("glpat-",), 16),
    Pattern("Slack token", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"), 10),
    Pattern("AWS key", ("AKIA", "ASIA"), 16, "A-Z0-9"),
    Pattern("package token", ("pypi-", "npm_"), 30),
    Pattern("SendGrid key", ("SG.",), 20, r"A-Za-z0-9_\-."),
    Pattern(
        "token",
        ("Bearer ", "bearer ", "Basic "),
        16,
        r"A-Za-z0-9_\-.~+/=",
        mixed=True,
        keeps_start=True,
    ),
)


def environment_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Return the secret variables of `env`, and the passwords of addresses in any, by name."""
    return dict(_find_secrets(tuple(env.items())))


@lru_cache(maxsize=8)  # each cell asks several times, and the environment seldom changes
def _find_secrets(variables: tuple[tuple[str, str], ...]) -> dict[str, str]:
    secrets = {name: value for name, value in variables if _is_secret(name, value)}
    for name, value in variables:
        for number, password in enumerate(_PASSWORD.findall(value), 1):
            label = name if number == 1 else f"{name} ({number})"
            secrets |= {f"password in {label}": password, f"password of {label}": unquote(password)}
    return {name: value for name, value in secrets.items() if len(value) >= SHORTEST_VALUE}


def _is_secret(name: str, value: str) -> bool:
    """Return whether a variable is secret by its name, except credentials that are a path."""
    word = _last_word(name)
    # GOOGLE_APPLICATION_CREDENTIALS and similar variables name a file
    is_path = word.startswith("CREDENTIAL") and value.startswith(("/", "~", "."))
    return word in WORDS and not is_path


@cache
def _last_word(name: str) -> str:
    parts = [w for w in re.split(r"[^A-Z0-9]+", name.upper()) if w and not w.isdigit()]
    return parts[-1] if parts else ""


def list_written_forms(value: str) -> set[str]:
    """Return the written forms of a value: plain, HTML, Python literal, JSON, JSON in JSON."""
    # whether repr escapes a quote depends on the text around it, so both ways are listed
    parts = [repr(part)[1:-1] for part in value.split("'")]
    forms = {value, escape(value), escape(value, quote=False), "'".join(parts), "\\'".join(parts)}
    for _ in range(2):
        forms |= {
            json.dumps(text, ensure_ascii=ascii_only)[1:-1]
            for text in forms
            for ascii_only in (True, False)
        }
    return forms
