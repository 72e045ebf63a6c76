"""The parts of a release that follow from the repository's address: links, and the page on PyPI.

Why: README names pictures and files by relative paths, which are right in a checkout and broken on
PyPI. The address stands once, as `repository` of this hook in pyproject.toml; hatchling calls it at
each build.

Rules
- With an address, pictures and links of README become absolute and `[project.urls]` is filled.
- Without one, pictures are left out and links become their text; there are no URLs. None is
  invented.
- Links to other sites and to headings of the page stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


class ReleaseMetadata(MetadataHookInterface):
    """Fill `readme` and `urls` of the project's metadata."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill the dynamic fields."""
        root = Path(self.root)
        address = self.config["repository"].rstrip("/")
        text = make_links_absolute((root / "README.md").read_text(encoding="utf-8"), address)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = make_urls(address)


def make_links_absolute(text: str, address: str) -> str:
    """Return markdown whose relative pictures and links point into the repository at `address`."""

    def replace(link: re.Match[str]) -> str:
        picture, label, path = link.groups()
        if not address:
            return "" if picture else label
        return f"{picture}[{label}]({address}/{'raw' if picture else 'blob'}/main/{path})"

    return _LINK.sub(replace, text)


def make_urls(address: str) -> dict[str, str]:
    """Return the links of the project's page on PyPI."""
    if not address:
        return {}
    return {
        "Repository": address,
        "Changelog": f"{address}/blob/main/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
