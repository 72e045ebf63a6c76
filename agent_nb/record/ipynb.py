"""A notebook file as JSON: read with errors that say what is wrong, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .find import marked


def load(path: str | Path) -> dict[str, Any]:
    """Read a notebook file. Raises UsageError when it is none, or git has left a conflict in it."""
    text = ""
    try:
        text = Path(path).read_text(encoding="utf-8")
        nb = json.loads(text)
    except FileNotFoundError:
        raise UsageError(f"File not found: {path}.") from None
    except (OSError, ValueError) as fault:
        raise UsageError(
            marked(text, path) or f"{path} cannot be read as a notebook: {fault}"
        ) from fault
    if not isinstance(nb, dict) or not isinstance(nb.get("cells"), list):
        raise UsageError(f"{path} is not a notebook of format 4: it has no list of cells.")
    return nb


def save(nb: dict[str, Any], path: str | Path) -> None:
    """Write a notebook file, whole or not at all; order and indentation of an existing file stay.
    Raises OSError.
    """
    target = Path(path)
    text = json.dumps(nb, ensure_ascii=False, indent=_indent(target)) + "\n"
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n", errors="surrogatepass") as file:
            file.write(text)
        os.chmod(name, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _indent(path: Path) -> int | str:
    try:
        with path.open(encoding="utf-8") as file:
            found = re.match(r"\{\r?\n([ \t]+)", file.read(100))
    except (OSError, ValueError):
        return 1
    return found[1] if found else 1


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
