"""The pictures of a call that ran again, against those of its record.

Rules
- Equal are so many pictures in the same order, each equal as `record.pictures` says.
- In older records a result has no pictures of its own: they stood below the card, in the cell. Its
  text names them as the library does (`<Figure size 700x300 with 1 Axes>`), which counts as our
  words for a picture, and the pictures are shown below the card again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..events import Result, content_text
from ..record import PictureComparison
from ..tools import Outcome

# what stands in the text of an older result for a picture, and what stands there now
_OLD = (
    r"<Figure size [^>\n]*>|Figure\(\d+x\d+\)|<IPython\.core\.display\.Image object>"
    r"|<PIL\.[^>\n]*>|\w+ \d+ × \d+ \w+|\(image/\w+, [\d,]+ bytes\)"
)
_NAMED = re.compile(rf"^(?:{_OLD}|\[figure \d+(?:: \d+×\d+ pixels)?[^\]\n]*\])$", re.MULTILINE)
_SIZED = re.compile(r"^\[(figure \d+): \d+×\d+ pixels", re.MULTILINE)
_SHOWN = re.compile(_OLD)
_FIGURE = "[figure]"


def is_older(result: Result, outcome: Outcome) -> bool:
    """Return whether the record is of a time when the pictures of a result stood elsewhere."""
    if result.attachments or not outcome.attachments:
        return False
    text = content_text(result.content)
    return bool(_shown(result.display)) or _SHOWN.search(text) is not None


def find_cell_pictures(result: Result, outcome: Outcome) -> tuple[dict[str, Any], ...]:
    """Return the pictures that an older record left to the cell: it names them, and has fewer."""
    named = len(_SHOWN.findall(content_text(result.content)))
    held = 1 if _shown(result.display) else 0
    return outcome.attachments[: max(0, named - held)]


def remove_names(content: Any) -> Any:
    """Return the text of a result with every picture named alike, once in a row."""
    if not isinstance(content, str):
        return content
    lines = _NAMED.sub(_FIGURE, content).splitlines()
    return "\n".join(
        line for n, line in enumerate(lines) if line != _FIGURE or lines[n - 1 : n] != [_FIGURE]
    )


def without_sizes(content: Any) -> Any:
    """Return the text of a result without the sizes of its pictures: those are compared as such.

    The size of a figure depends on its font.
    """
    return _SIZED.sub(r"[\1", content) if isinstance(content, str) else content


def compare_result_pictures(
    result: Result, outcome: Outcome, same_text: Callable[[str, str], bool] = str.__eq__
) -> PictureComparison:
    """Return how the pictures of a call that ran again differ from the recorded ones.

    The outcome's pictures are as they would be recorded. `same_text` compares the texts of figures.
    """
    fresh = outcome.attachments
    if not is_older(result, outcome):
        before: Sequence[str | Mapping[str, Any]] = result.attachments or _shown(result.display)
        return PictureComparison.of_all(before, fresh or _shown(outcome.display), same_text)
    for picture in _shown(result.display):
        comparisons = [PictureComparison.of_pair(picture, other, same_text) for other in fresh]
        if all(one.difference for one in comparisons):
            return comparisons[-1]
    return PictureComparison()


def _shown(display: dict[str, Any] | None) -> Sequence[str]:
    held = ((display or {}).get(kind) for kind in PictureComparison.TYPES)
    return [picture for picture in held if isinstance(picture, str) and picture]
