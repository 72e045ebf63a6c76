"""The path of an event, and the globs that select events by it.

The path is the run, then the event's path in a foreign stream, or its span: `run/span`. In a glob,
`*` matches within one level, `**` any number of levels: `run/**` is the whole run, `**/a` every
path that ends in the level `a`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .types import Event


def match_path(glob: str, event: Event) -> bool:
    """Return whether the path of an event matches a glob."""
    path = "/".join(part for part in (event.run, event.path or event.span) if part)
    return _read_glob(glob.strip("/")).fullmatch(f"{path}/") is not None


@lru_cache(maxsize=256)  # bounded, because the clients of a server choose the globs
def _read_glob(glob: str) -> re.Pattern[str]:
    """Return the regular expression of a glob, for a path of which each level ends with a slash."""
    parts = [""]  # those between `**`
    for level in glob.split("/"):
        if level == "**":
            parts.append("")
        else:
            parts[-1] += _join_parts(list(map(re.escape, level.split("*"))), "[^/]*") + "/"
    return re.compile(_join_parts(parts, "(?:[^/]*/)*"))


def _join_parts(parts: list[str], between: str) -> str:
    """Return the pattern of `parts` with `between`, a repetition of anything, between them.

    The first match of a middle part is enough. The atomic groups `(?>…)` keep it: else a glob of
    many stars would take exponential time.
    """
    first, *others = parts
    if not others:
        return first
    middle = "".join(f"(?>{between}?{part})" for part in others[:-1])
    return f"{first}{middle}{between}{others[-1]}"
