"""What differs by chance between a request and its recording, and is masked on both sides.

Why: a program that runs again sends other temporary folders, dates and addresses of objects. The
port of a server on this machine is another one each time the server is started.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from ..agent import Rule
from ..wire import encode_canonical
from .claude_code import list_masks
from .exchange import Request

_DATE = (  # with its day of the week, or without
    r"(?:[A-Z][a-z]+day,? )?(?:\d{4}-\d\d-\d\d|\d{1,2}/\d{1,2}/\d{2,4}"
    r"|[A-Z][a-z]+ \d{1,2}, \d{4}|\d{1,2} [A-Z][a-z]+ \d{4})"
)
# the start of a word; in JSON the first word of a line follows the letter of an escape such as `\n`
_START = r"(?:\b|(?<=\\[nrt]))"


class Mask(msgspec.Struct, frozen=True):
    """Replaces what `pattern` matches. Each match has one of the `hints`, in letters of any case.

    A search for hints takes a hundredth of the time of one for the pattern. (): it has none.
    """

    pattern: re.Pattern[str]
    replacement: str
    hints: tuple[str, ...] = ()  # in small letters


Masks = Sequence[Mask]
# for canonical JSON. What they find: `/tmp/ipykernel_71/308.py`, `/tmp/tmpa8x2/a.csv`,
# `<Chain at 0x7f09a8d3f>`, `Today's date is 2026-11-21`
MASKS = tuple(
    Mask(re.compile(pattern), text, hints)
    for pattern, text, hints in (
        # the lookbehind: in a picture's base64 each character would begin another attempt
        (
            r"(?<![\w./\\:-])[\w./\\:-]*ipykernel_\d+[/\\]+\d+\.py|<ipython-input-\d+-\w+>",
            "…cell",
            ("ipykernel_", "<ipython-input-"),
        ),
        (
            r"(?:/private)?(?:/var/folders/\w+/\w+/T|/tmp)/[\w.-]+",
            "…tmp",
            ("/var/folders/", "tmp/"),
        ),
        # backslashes are doubled in JSON, and again in JSON within it
        (r"\\{1,8}AppData\\{1,8}Local\\{1,8}Temp\\{1,8}[\w.-]+", "…tmp", ("appdata\\",)),
        # `_START` as lookbehinds behind `0x`: a pattern that begins with letters is found quickly
        # in the megabytes of a picture
        (r"0x(?:(?<!\w0x)|(?<=\\[nrt]0x))[0-9a-fA-F]{6,}\b", "0x…", ("0x",)),
        (
            rf"(?i:{_START}(?:today(?:'s date)?(?: is)?|current date(?: is)?))[\s:*]{{1,4}}{_DATE}",
            "today …",
            ("today", "current date"),
        ),
        # Pydantic's version, in an error that a library sends back to the model
        (
            r"https://errors\.pydantic\.dev/[\d.]+/",
            "https://errors.pydantic.dev/…/",
            ("errors.pydantic.dev",),
        ),
        # what divides the parts of a form, such as that of a file which is uploaded
        (r'--[0-9a-f]{32}(?=\\r\\nContent-|--\\r\\n")', "--…", ("--",)),
    )
)
_LOOPBACK = re.compile(r"(?i)^(https?://(?:localhost|127\.[\d.]+|\[::1\])):\d+(?=/|$)")


class TapeMasks:
    """The masks of requests; `rules`: those of the notebook's project."""

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        self._masks = [*MASKS, *_compile((rule.pattern, rule.replace) for rule in rules)]
        self._latest: tuple[Request | None, str] = (None, "")  # a request, and its key

    def choose_masks(self, request: Request) -> Masks:
        """Return the masks of a request; some programs have their own."""
        return [*_compile(list_masks(request.body.value)), *self._masks]

    def make_key(self, request: Request) -> str:
        """Return a request as masked canonical text."""
        latest, key = self._latest
        if latest is not request:
            text = encode_canonical([*read_target(request), request.body.value])
            key = mask_text(text, self.choose_masks(request))
            self._latest = (request, key)
        return key


def read_target(request: Request) -> tuple[str, ...]:
    """Return where a request goes: provider (here without its port), method, path and query."""
    provider = _LOOPBACK.sub(r"\1", request.provider)
    return provider, request.method, request.path, request.query


def mask_text(text: str, masks: Masks) -> str:
    """Return a text in which the matches of masks are replaced."""
    lowered = text.lower()
    for mask in masks:
        if mask.hints and not any(hint in lowered for hint in mask.hints):
            continue
        # `sub` would read a backslash as a reference to a group: a doubled one stands for itself
        text = mask.pattern.sub(mask.replacement.replace("\\", r"\\"), text)
        lowered = text.lower()
    return text


def _compile(masks: Iterable[tuple[str, str]]) -> list[Mask]:
    return [Mask(re.compile(pattern), text) for pattern, text in masks]
