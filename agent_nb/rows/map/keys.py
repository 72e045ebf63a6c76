"""The keys of rows: the same prompt with the same inputs has the same key in every execution.

Why: when a stopped map runs again, or its data grew, only rows without an answer are asked.

Rules
- A key is made of the inputs of the row's run (`record.fingerprint`), of its occurrence among rows
  with equal inputs, and of the repeat. The position does not count, so rows may be sorted.
- Only the prompt and its attachments differ between the rows of a map; all else is digested once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...record import Digests, digest_value

KEY_LENGTH = 32  # hexadecimal digits


class Keys:
    """Makes the keys of one map, row by row.

    `inputs`: the digests of any run of the map's agent; each row replaces that of the prompt.
    """

    def __init__(self, inputs: Digests) -> None:
        self._inputs = inputs
        self._seen: Counter[tuple[str, int]] = Counter()

    def inputs(self, prompt: str, attachments: Sequence[Mapping[str, Any]] = ()) -> Digests:
        """Return the digests of a row's inputs; `prompt` as the model reads it (redacted)."""
        return self._inputs.with_prompt(prompt, attachments)

    def next(
        self, prompt: str, attachments: Sequence[Mapping[str, Any]] = (), *, repeat: int = 0
    ) -> str:
        """Return the key of the next row with this prompt; `repeat` counts from 0.

        Each call counts as one more row with these inputs, and so returns another key.
        """
        inputs = self.inputs(prompt, attachments).hash
        self._seen[inputs, repeat] += 1
        return digest_value([inputs, self._seen[inputs, repeat], repeat], KEY_LENGTH)


def map_digest(keys: Sequence[str]) -> str:
    """Return one digest of the keys of all rows, in order."""
    return digest_value(list(keys), KEY_LENGTH)
