"""Compares the pictures of a call that ran again with the pictures in its record.

Older versions recorded pictures in other ways, and their records must replay unchanged:
- They left displayed charts, tables and widgets in the cell below the card. A replay of their
  records shows them there again, and compares the others.
- Still older versions ("before pictures") recorded no attachments: the text of the result named the
  pictures as their library does (`<Figure size 700x300 with 1 Axes>`). Such a name counts as equal
  to a name of today (`[figure 1]`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..events import Result, content_text
from ..record import PictureComparison
from ..tools import Outcome
from ..wire import Attachment

# The names of pictures in an older result: of Matplotlib (repr and str), IPython and PIL, of
# displays ("PNG 700 × 300 pixels"), and of mime bundles ("(image/png, 12,345 bytes)").
_OLD_WORDS = (
    r"<Figure size [^<>\n]*>|Figure\(\d+x\d+\)|<IPython\.core\.display\.Image object>"
    r"|<PIL\.[^<>\n]*>|\b\w+ \d+ × \d+ \w+|\(image/\w+, [\d,]+ bytes\)"
)
# a line with only such a name, or a name as written now: [figure 1: 700×300 pixels], [figure 1]
_PICTURE_LINE = re.compile(
    rf"^(?:{_OLD_WORDS}|\[figure \d+(?:: \d+×\d+ pixels)?[^\]\n]*\])$", re.MULTILINE
)
_SIZED_NAME = re.compile(r"^\[(figure \d+): \d+×\d+ pixels", re.MULTILINE)
_OLD_NAME = re.compile(_OLD_WORDS)
_ANY_PICTURE = "[figure]"  # stands for any name of a picture in the texts that are compared


def is_before_pictures(result: Result, outcome: Outcome) -> bool:
    """Return whether an older record lacks the pictures that the call makes again now."""
    if result.attachments or not outcome.attachments:
        return False
    text = content_text(result.content)
    return bool(_display_pictures(result.display)) or _OLD_NAME.search(text) is not None


def find_cell_pictures(result: Result, outcome: Outcome) -> tuple[dict[str, Any], ...]:
    """Return the pictures that the cell shows below the card, for a result of an older record.

    There are as many as the text of the result names, less the one in its display.
    """
    named_count = len(_OLD_NAME.findall(content_text(result.content)))
    displayed_count = 1 if _display_pictures(result.display) else 0
    return outcome.attachments[: max(0, named_count - displayed_count)]


def split_cell_displays(
    result: Result, outcome: Outcome, *, names_pictures: bool
) -> tuple[Outcome, list[Attachment]]:
    """Return the outcome as an older version recorded it, and what it left below the card.

    A record with displays among its attachments is new: it is compared whole. `names_pictures`: the
    text of this tool names its pictures, which older versions therefore recorded.
    """
    recorded = [Attachment(attachment) for attachment in result.attachments]
    if any(attachment.display for attachment in recorded):
        return outcome, []
    remaining, below = [], []
    for shown in map(Attachment, outcome.attachments):
        if shown.was_drawn:  # older versions drew no charts
            shown["data"] = ""
        unnamed = shown.was_below and not recorded and not names_pictures
        leaves_card = bool(shown.display) or unnamed
        if leaves_card and shown.was_below:
            below.append(shown)
        if not leaves_card or (shown["data"] and shown.display):
            remaining.append({k: v for k, v in shown.items() if k != Attachment.DISPLAY})
    return msgspec.structs.replace(outcome, attachments=tuple(remaining)), below


def unify_names(content: Any) -> Any:
    """Return the text of a result with `_ANY_PICTURE` for each run of lines that name pictures.

    Other content is returned unchanged.
    """
    if not isinstance(content, str):
        return content
    lines = _PICTURE_LINE.sub(_ANY_PICTURE, content).splitlines()
    return "\n".join(
        line
        for n, line in enumerate(lines)
        if line != _ANY_PICTURE or lines[n - 1 : n] != [_ANY_PICTURE]
    )


def without_sizes(content: Any) -> Any:
    """Return the text of a result without the sizes of its pictures, which depend on fonts."""
    return _SIZED_NAME.sub(r"[\1", content) if isinstance(content, str) else content


def compare_result_pictures(
    result: Result, outcome: Outcome, same_text: Callable[[str, str], bool] = str.__eq__
) -> PictureComparison:
    """Return how the pictures of a call that ran again differ from the recorded ones.

    `outcome`: with its pictures as they would be recorded. `same_text` compares the texts of
    figures. The one picture of a record from before pictures must be among the new pictures.
    """
    displayed = _display_pictures(result.display)
    if not is_before_pictures(result, outcome):
        recorded: Sequence[str | Mapping[str, Any]] = result.attachments or displayed
        fresh = outcome.attachments or _display_pictures(outcome.display)
        return PictureComparison.of_all(recorded, fresh, same_text)
    for picture in displayed:
        comparisons = [
            PictureComparison.of_pair(picture, each, same_text) for each in outcome.attachments
        ]
        if all(comparison.difference for comparison in comparisons):
            return comparisons[-1]
    return PictureComparison()


def _display_pictures(display: dict[str, Any] | None) -> Sequence[str]:
    """Return the pictures (base64) of a display's mime bundle."""
    displayed = ((display or {}).get(kind) for kind in PictureComparison.TYPES)
    return [picture for picture in displayed if isinstance(picture, str) and picture]
