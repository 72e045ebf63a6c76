"""Makes the rows of a map, with prompts, pictures and keys, before the first request.

All are filled in at once: an error in the last row must show before the first one is paid for.

Rule: the rows hold the data of pictures up to `HELD_CHARACTERS` in all. For further pictures the
template is filled in again when the row is asked; the prompt stays the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....errors import UsageError
from ....record import RunInputs
from ....wire import Redaction, replace_surrogates
from ..keys import Keys
from ..row import Row
from .rows import Rows
from .template import Template

HELD_CHARACTERS = 64_000_000  # the most base64 that the rows of a map hold


class Filling:
    """Fills in the prompts of `rows` from a template, and redacts them."""

    def __init__(self, rows: Rows, template: Template, redaction: Redaction) -> None:
        self._rows, self._template, self._redaction = rows, template, redaction
        self._held = 0

    def fill_all(self, shared_inputs: RunInputs, repeats: int) -> list[Row]:
        """Return the rows in the order in which they are asked.

        `shared_inputs`: the inputs of a run of this agent without a prompt. `repeats`: how often
        each row is asked. Raises UsageError for a prompt that cannot be filled in or is empty.
        """
        keys = Keys(shared_inputs.digests)
        filled_rows = []
        for position in range(len(self._rows)):
            filled = self._template.fill(self._rows.values(position))
            prompt = self._redaction.value(replace_surrogates(filled.prompt))
            if not prompt.strip() and not filled.pictures:
                raise UsageError(
                    f"The prompt of row {position} is empty. Leave the row out of the data."
                )
            pictures = self._limit_pictures(filled.pictures)
            filled_rows += [
                Row(
                    position=position,
                    prompt=prompt,
                    # `pictures` may lack the data, which counts for the key
                    key=keys.make_key(prompt, filled.pictures, repeat=repeat),
                    attachments=pictures,
                    repeat=repeat,
                )
                for repeat in range(repeats)
            ]
        return filled_rows

    def read_pictures(self, row: Row) -> Row:
        """Return a row with the data of its pictures, read again if the row does not hold it.

        Raises UsageError if the pictures cannot be read.
        """
        if all(picture["data"] for picture in row.attachments):
            return row
        filled = self._template.fill(self._rows.values(row.position))
        return msgspec.structs.replace(row, attachments=filled.pictures)

    def _limit_pictures(self, pictures: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        """Return the pictures of a row, without their data if the rows hold too many already."""
        size = sum(len(picture["data"]) for picture in pictures)
        if self._held + size > HELD_CHARACTERS:
            return tuple({**picture, "data": ""} for picture in pictures)
        self._held += size
        return tuple(pictures)
