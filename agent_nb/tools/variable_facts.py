"""The description of a variable as plain values, and the line about it that a model reads.

Why apart from `describe`: a run receives these values and never touches the user's objects.
"""

from __future__ import annotations

import msgspec

_BYTES_PER_TOKEN = 4  # about, in UTF-8


class VariableFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a variable.

    `kind`: its type; `columns`: (label, dtype) of the first columns; `columns_left_out`: how many
    more it has; `note`: a length, a signature, item types.
    """

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    columns_left_out: int = 0
    note: str = ""

    def as_text(self) -> str:
        """Return the description as one line: `df: pandas.DataFrame 120×1 (city: str)`."""
        size = "×".join(map(str, self.shape))
        facts = [f"{self.name}: {self.kind}", size, self.dtype, self.note]
        line = " ".join(filter(None, facts))
        columns = [f"{label}: {dtype}" for label, dtype in self.columns]
        if self.columns_left_out:
            columns.append(f"… {self.columns_left_out:,} more")
        return f"{line} ({', '.join(columns)})" if columns else line


def count_tokens(text: str) -> int:
    """Return about how many tokens a line costs, its end included."""
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1
