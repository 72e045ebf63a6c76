"""The hook of a Jupyter server that moves records into the notebook's metadata on every save.

Why a server extension: front ends send only cells to the kernel, so the kernel cannot write the
file; and a front end that sees the file change makes its user choose a version. The hook changes
the content that is being saved, so there is only one version. Jupyter calls the functions that
begin with `_jupyter_` and `_load_jupyter_` by their names.

Rule: the hook never raises into the server: it logs an error, and the notebook is saved with the
changes made so far.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..record import METADATA_KEY, NotebookRuns
from .saved_views import goes_on, update_forms


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(app: Any) -> None:
    counts: dict[str, int] = {}  # see `remaining`

    # Jupyter passes the arguments by these names
    def hook(model: Any = None, path: str = "", contents_manager: Any = None, **_: Any) -> None:
        try:
            if before_save(model, path, contents_manager):
                remark = remaining(model["content"], path, counts)
                if remark:
                    app.log.info(remark)
        except Exception:  # an error in a record must not keep the notebook from being saved
            app.log.exception("agent_nb: the records of %s stay where they are", path)

    app.contents_manager.register_pre_save_hook(hook)


def before_save(model: Any, path: str, manager: Any) -> bool:
    """Move the records of a notebook into its metadata, and remove the widgets of ended runs.

    `model` is what the server saves: a dict with the notebook under `content`, changed in place.
    The live view of a run that goes on stays, and its static form says that it goes on. Return
    whether a view changed, or the notebook holds metadata or records of this package; those of a
    newer format do not change and do not count.
    """
    nb = model.get("content") if isinstance(model, dict) else None
    if not isinstance(nb, dict) or model.get("type") != "notebook":
        return False
    removed = NotebookRuns(nb).remove_widgets(goes_on)
    updated = update_forms(nb)
    has_metadata = NotebookRuns(nb).lift(on_disk(manager, path))  # moves the records
    return has_metadata or removed + updated > 0


def remaining(nb: dict[str, Any], path: str, counts: dict[str, int]) -> str:
    """Return a remark if more cells have a record but no outputs than at the last save, else "".

    `counts` holds the number of such cells at the last save, by path. It is updated here; the first
    save compares with 0.
    """
    count, former_count = len(NotebookRuns(nb).cleared_cells()), counts.get(path, 0)
    counts[path] = count
    if count <= former_count:
        return ""
    cells = "1 cell remains" if count == 1 else f"{count} cells remain"
    return (
        f"agent_nb: outputs of {path} are cleared; the record of {cells} in its metadata"
        " (%agent forget, jupyter agent-nb strip)"
    )


def on_disk(manager: Any, path: str) -> Any:
    """Return this package's metadata in the saved file.

    Returns None if it has none, cannot be read, or lies elsewhere than in a file system.
    """
    locate = getattr(manager, "_get_os_path", None)  # only managers of file systems have it
    if locate is None:
        return None
    try:
        data = Path(locate(path)).read_bytes()
        # most notebooks have no such key: they are not parsed
        if f'"{METADATA_KEY}"'.encode() in data:
            return json.loads(data).get("metadata", {}).get(METADATA_KEY)
        return None
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
