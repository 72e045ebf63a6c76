"""The secret filter: what passes it holds no key, however the key is cut into pieces.

Why a stream filter before everything else: model, tools, view, log and record must see the same text, and a key that arrives in two
deltas is still a key.

Rules
- Secret are the values (`SHORTEST` characters or more) of environment variables whose last word says so (`…_KEY`, `…_TOKEN`,
  `…_PASSWORD`), also as they look inside a JSON string, and whatever has the form of a provider's key (`PATTERNS`).
- A key becomes `[redacted NAME]`; nothing of it stays. Of two that begin at the same place the longer one counts.
- A form begins where no letter or digit stands before it, and reaches as far as the characters that such a key may have.
- Only what may be the start of a key is held back. What looks like a key for more than `LONGEST` characters is redacted as it comes.
- The result does not depend on the chunking: a text fed in pieces gives what `redact_text` gives of the whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

SHORTEST = 12
LONGEST = 4096
WORDS = frozenset(
    {"KEY", "KEYS", "TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY", "PAT"}
)


class Pattern(msgspec.Struct, frozen=True):
    """The form of a key: `starts`, then at least `least` of `chars`; `mixed`: not all small letters, or twice as many."""

    name: str
    starts: tuple[str, ...]
    least: int
    chars: str = r"A-Za-z0-9_\-"
    mixed: bool = False
    kept: bool = False  # the start is no part of the secret


_ALNUM = "A-Za-z0-9"
PATTERNS = (
    Pattern("API key", ("sk-ant-", "sk-proj-", "sk-or-"), 10),
    Pattern("API key", ("sk-",), 16, mixed=True),
    Pattern("API key", ("gsk_", "xai-", "pplx-", "nvapi-", "csk-", "r8_", "tgp_v1_", "lsv2_"), 16),
    Pattern("API key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "dop_v1_", "shpat_", "lin_api_"), 16),
    Pattern("Google key", ("AIza",), 30),
    Pattern("Google token", ("ya29.",), 20, r"A-Za-z0-9_\-."),
    Pattern("Hugging Face token", ("hf_",), 16, _ALNUM),
    Pattern("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), 16, "A-Za-z0-9_"),
    Pattern("GitLab token", ("glpat-",), 16),
    Pattern("Slack token", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"), 10),
    Pattern("AWS key", ("AKIA", "ASIA"), 16, "A-Z0-9"),
    Pattern("package token", ("pypi-", "npm_"), 30),
    Pattern("SendGrid key", ("SG.",), 20, r"A-Za-z0-9_\-."),
    Pattern("token", ("Bearer ", "bearer ", "Basic "), 16, r"A-Za-z0-9_\-.~+/=", mixed=True, kept=True),
)
# Before a key in JSON: the letter or digit that ends an escape is no part of a word.
_after_escape = re.compile(r"\\(?:[bfnrt]|u[0-9a-fA-F]{4})\Z").search
_CONTEXT = 6  # characters of the longest escape
_CUT_ESCAPE = r"\\(?:[bfnrt]|u[0-9a-fA-F]{0,4})?\Z"
_cut_escape = re.compile(_CUT_ESCAPE).match


def environment_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `env` whose name ends with a word of `WORDS` and whose value is long enough, by name."""
    return {name: value for name, value in env.items() if len(value) >= SHORTEST and _is_secret(name, value)}


def _is_secret(name: str, value: str) -> bool:
    words = [w for w in re.split(r"[^A-Z0-9]+", name.upper()) if w and not w.isdigit()]
    if not words or words[-1] not in WORDS:
        return False
    # GOOGLE_APPLICATION_CREDENTIALS and its like name a file
    return not (words[-1].startswith("CREDENTIAL") and value.startswith(("/", "~", ".")))


class _Found(msgspec.Struct, frozen=True):
    """What begins at a place: a key (`end`, `label`), or what may become one (`end` -1; `chars`: as long as these follow)."""

    end: int
    label: str = ""
    chars: Callable[[str, int], Any] | None = None


_MAYBE = _Found(-1)


class _Rules:
    """What to look for, compiled once for a set of secrets."""

    def __init__(self, secrets: Iterable[tuple[str, str]]) -> None:
        values: dict[str, str] = {}
        for name, value in secrets:
            if len(value) >= SHORTEST:
                written = (value, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1])
                values |= dict.fromkeys(written, name)
        self._values = sorted(values.items(), key=lambda item: -len(item[0]))
        starts = {start for pattern in PATTERNS for start in pattern.starts}
        self._forms: dict[str, list[tuple[str, Pattern, Callable[[str, int], Any]]]] = {}
        for pattern in PATTERNS:
            for start in pattern.starts:
                chars = re.compile(f"[{pattern.chars}]*+").match
                self._forms.setdefault(start[0], []).append((start, pattern, chars))
        free = [v[:8] for v in values]
        # All that ordinary text costs is one search for a start, or for the beginning of one at the end of the text.
        self.alert = re.compile("|".join([_CUT_ESCAPE, *_beginnings(starts, _boundary_before), *_beginnings(free)])).search

    def find(self, text: str, start: int, *, final: bool) -> tuple[int, _Found]:
        """Return where the next key from `start` on begins (-1: nowhere) and what it is."""
        pos = start
        while candidate := self.alert(text, pos):
            at = candidate.start()
            form = self._form(text, at, final=final) if _boundary(text, at) else None
            found = _longer(form, self._value(text, at, final=final))
            if found is None and text[at] == "\\" and not final and _cut_escape(text, at):
                found = _MAYBE
            if found is not None:
                return at, found
            pos = at + 1
        return -1, _MAYBE

    def _value(self, text: str, at: int, *, final: bool) -> _Found | None:
        rest = len(text) - at
        for value, name in self._values:
            if text.startswith(value, at):
                return _Found(at + len(value), f"[redacted {name}]")
            if not final and rest < len(value) and value.startswith(text[at:]):
                return _MAYBE
        return None

    def _form(self, text: str, at: int, *, final: bool) -> _Found | None:
        maybe = None
        for start, pattern, chars in self._forms.get(text[at], ()):
            if text.startswith(start, at):
                end = chars(text, at + len(start)).end()
                if end == len(text) and not final and end - at <= LONGEST:
                    return _Found(-1, chars=chars)
                if end - at > LONGEST or _fits(pattern, text[at + len(start) : end]):
                    return _Found(end, self._label(text[at:end], pattern, start), chars)
            elif not final and start.startswith(text[at:]):
                maybe = _MAYBE
        return maybe

    def _label(self, key: str, pattern: Pattern, start: str) -> str:
        secret = key.removeprefix(start) if pattern.kept else key
        name = next((n for v, n in self._values if v == secret), pattern.name)
        return f"{start if pattern.kept else ''}[redacted {name}]"


def _longer(one: _Found | None, other: _Found | None) -> _Found | None:
    """Return which of two counts: what is undecided, else what reaches further."""
    if one is None or other is None:
        return one or other
    return one if one.end < 0 or (other.end >= 0 and one.end >= other.end) else other


def _boundary(text: str, at: int) -> bool:
    """Whether a form may begin at `at`: no letter or digit stands before it, or one that ends an escape of JSON."""
    last = text[at - 1 : at]
    return not (last.isascii() and last.isalnum()) or _after_escape(text, max(0, at - _CONTEXT), at) is not None


def _fits(pattern: Pattern, body: str) -> bool:
    if len(body) < pattern.least:
        return False
    return not pattern.mixed or len(body) >= 2 * pattern.least or re.search("[A-Z0-9]", body) is not None


_WHOLE = ""  # marks the end of a word in the tree; longer words with this beginning need no look of their own


def _boundary_before(length: int) -> str:
    """Return a pattern that holds where a word begins `length` characters back; `_boundary` decides in the end."""
    seen = "(?s:.)" * length
    return rf"(?:(?<![A-Za-z0-9]{seen})|(?<=\\[bfnrt]{seen})|(?<=\\u[0-9a-fA-F]{{4}}{seen}))"


def _beginnings(words: Iterable[str], before: Callable[[int], str] = lambda _: "") -> list[str]:
    """Return patterns that find a word of two or more characters, or as much of it as the text still has.

    `before(n)` must hold n characters back; it is asked late, because looking behind is what costs.
    """
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for char in word:
            node = node.setdefault(char, {})
        node[_WHOLE] = {}
    found = []
    for first, below in sorted(tree.items()):
        seconds = [rf"\Z{before(1)}", *(f"{re.escape(c)}{before(2)}{_branches(node)}" for c, node in sorted(below.items()))]
        found.append(f"{re.escape(first)}(?:{'|'.join(seconds)})")
    return found


def _branches(node: dict[str, Any]) -> str:
    if _WHOLE in node:
        return ""
    return r"(?:\Z|" + "|".join(re.escape(char) + _branches(below) for char, below in sorted(node.items())) + ")"


@lru_cache(maxsize=32)
def _rules(secrets: tuple[tuple[str, str], ...]) -> _Rules:
    return _Rules(secrets)


def _rules_for(secrets: Mapping[str, str] | None) -> _Rules:
    return _rules(tuple(sorted(secrets.items())) if secrets else ())


class Redactor:
    """Filters one stream of text. `secrets` are values by name (see `environment_secrets`)."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._rules = _rules_for(secrets)
        self._alert = self._rules.alert
        self._held: list[str] = []
        self._size = 0
        self._grows: Callable[[str, int], Any] | None = None  # held is a form, as long as these characters follow
        self._swallows: Callable[[str, int], Any] | None = None  # the rest of a key that was too long to be held
        self._last = ""  # what was decided last; its end is what stands before the next text

    def feed(self, text: str) -> str:
        """Return the text that may pass now."""
        if not self._held and self._swallows is None and self._alert(text) is None:
            if text:
                self._last = text
            return text
        return self._look(text)

    def close(self) -> str:
        """The stream is over: return what was held back."""
        self._swallows = None
        return self._filter("", final=True)

    def _look(self, text: str) -> str:
        if self._swallows is not None:
            end = self._swallows(text, 0).end()
            if end == len(text):
                return ""
            self._swallows, text = None, text[end:]
        elif self._grows is not None and self._grows(text, 0).end() == len(text) and self._size + len(text) <= LONGEST:
            self._held.append(text)
            self._size += len(text)
            return ""
        return self._filter(text, final=False)

    def _filter(self, text: str, *, final: bool) -> str:
        before = self._last[-_CONTEXT:]
        pos = len(before)
        text = "".join([before, *self._held, text])
        self._held, self._size, self._grows = [], 0, None
        out: list[str] = []
        while pos < len(text):
            begin, found = self._rules.find(text, pos, final=final)
            out.append(text[pos : begin if begin >= 0 else len(text)])
            if begin < 0:
                break
            if found.end < 0:
                self._held, self._size, self._grows = [text[begin:]], len(text) - begin, found.chars
                text = text[:begin]
                break
            out.append(found.label)
            pos = found.end
            if pos == len(text) and not final:
                self._swallows = found.chars
        self._last = text[-_CONTEXT:]
        return "".join(out)


def redact_text(text: str, secrets: Mapping[str, str] | None = None) -> str:
    """Return `text` with every key replaced."""
    if _rules_for(secrets).alert(text) is None:
        return text
    redactor = Redactor(secrets)
    return redactor.feed(text) + redactor.close()


def redact_value(value: Any, secrets: Mapping[str, str] | None = None) -> Any:
    """Return a JSON value with every key replaced in its texts and in the names of its members. Nesting may be of any depth."""
    root: list[Any] = [value]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, key = todo.pop()
        held = holder[key]
        if isinstance(held, str):
            holder[key] = redact_text(held, secrets)
        elif isinstance(held, dict):
            copy = holder[key] = {redact_text(k, secrets) if isinstance(k, str) else k: v for k, v in held.items()}
            todo.extend((copy, k) for k in copy)
        elif isinstance(held, list | tuple):
            items = holder[key] = list(held)
            todo.extend((items, n) for n in range(len(items)))
    return root[0]
