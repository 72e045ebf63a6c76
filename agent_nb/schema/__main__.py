"""`python -m agent_nb.schema`: write the schema file again after the event types have changed."""

from __future__ import annotations

from . import PATH, text

PATH.write_text(text(), encoding="utf-8", newline="\n")
