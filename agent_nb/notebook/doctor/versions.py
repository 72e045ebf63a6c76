"""Versions of installed packages."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

PACKAGE = "jupyter-agent-nb"


def installed(package: str) -> str:
    """Return the version of an installed package, "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def numbers(text: str) -> tuple[int, ...]:
    """Return the first three numbers of a version."""
    return tuple(int(n) for n in re.findall(r"\d+", text)[:3])
