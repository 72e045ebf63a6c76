"""The keys of rows: the same prompt with the same inputs has the same key in every execution.

So only rows without an answer are asked when a stopped map runs again, or its data grew. The
position of a row does not count, so that rows may be sorted; equal rows are numbered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...record import Digests, digest_value

KEY_LENGTH = 32  # hexadecimal digits


class Keys:
    """Makes the keys of one map, row by row.

    `inputs`: the digests of any run of the map's agent; each row replaces the prompt's digest.
    """

    def __init__(self, inputs: Digests) -> None:
        self._inputs = inputs
        self._seen: Counter[tuple[str, int]] = Counter()

    def make_key(
        self, prompt: str, attachments: Sequence[Mapping[str, Any]] = (), *, repeat: int = 0
    ) -> str:
        """Return the key of the next row with this prompt (redacted); `repeat` counts from 0.

        Each call counts as one more row with these inputs, and so returns another key.
        """
        inputs = self._inputs.with_prompt(prompt, attachments).hash
        self._seen[inputs, repeat] += 1
        return digest_value([inputs, self._seen[inputs, repeat], repeat], KEY_LENGTH)


def map_digest(keys: Sequence[str]) -> str:
    """Return one digest of the keys of all rows, in order."""
    return digest_value(list(keys), KEY_LENGTH)
