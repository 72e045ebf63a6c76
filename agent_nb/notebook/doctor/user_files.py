"""Checks of what we keep for the user: the signing secret and the folder of journals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...host.paths import tilde
from .findings import Finding


def signing_secret() -> Iterator[Finding]:
    """Check whether records can be signed."""
    from jupyter_core.paths import jupyter_data_dir

    path = Path(jupyter_data_dir()) / "notebook_secret"
    if path.is_file() and os.access(path, os.R_OK):
        yield Finding("signatures", "ok", f"records are signed with {tilde(path)}")
    elif _writable(path.parent) and not path.exists():
        yield Finding("signatures", "ok", f"the first run makes {tilde(path)}")
    else:
        todo = f"make {tilde(path)} readable, or set JUPYTER_DATA_DIR"
        yield Finding(
            "signatures",
            "broken",
            "records cannot be signed, so that their code must be trusted by hand",
            todo,
        )


def journal_folder() -> Iterator[Finding]:
    """Check whether journals can be written."""
    from ...record.journal import folder, journals

    path = folder()
    if _writable(path):
        yield Finding("journals", "ok", f"{tilde(path)}, {len(journals())} kept")
    else:
        todo = "make the folder writable, or set XDG_STATE_HOME"
        yield Finding(
            "journals",
            "broken",
            f"{tilde(path)} cannot be written: a killed kernel loses its run",
            todo,
        )


def _writable(folder: Path) -> bool:
    """Return whether `folder` can be written, or made."""
    place = next((p for p in (folder, *folder.parents) if p.exists()), None)
    return place is not None and place.is_dir() and os.access(place, os.W_OK)
