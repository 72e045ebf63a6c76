"""The description of a variable as plain values, and the line about it that a model reads.

Why apart from `describe`: a run receives these values and never touches the user's objects.
"""

from __future__ import annotations

import msgspec

_PER_TOKEN = 4  # bytes of a token, about


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a variable.

    `kind`: its type; `columns`: (label, dtype), without the last `more`; `note`: a length, a
    signature, item types.
    """

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    more: int = 0
    note: str = ""

    def as_text(self) -> str:
        """Return the description as one line: `df: pandas.DataFrame 120×3 (city: object)`."""
        listed = [f"{label}: {dtype}" for label, dtype in self.columns]
        listed += [f"… {self.more:,} more"] if self.more else []
        size = "×".join(map(str, self.shape))
        facts = [f"{self.name}: {self.kind}", size, self.dtype, self.note]
        head = " ".join(filter(None, facts))
        return f"{head} ({', '.join(listed)})" if listed else head


def count_tokens(text: str) -> int:
    """Return about how many tokens a line costs, its end included."""
    return len(text.encode("utf-8", "replace")) // _PER_TOKEN + 1
