"""The keys of a question: A, D, E press its buttons, Shift+Enter sends fields, Escape goes back.

Why: ipywidgets has no key handler, and JupyterLab takes letters for itself while a button has the
focus (A inserts a cell, D D deletes this one). HTML widgets of a live view are not sanitised, so an
image in one can run `keys.js` when it loads; the script listens to the form around it. Where a
front end forbids such a handler, Tab, Space and Enter still reach and press every button.

Rules
- The HTML is a constant, with no text from a model.
- A field sends its value when it loses the focus, so a key takes the focus away before it presses.
"""

from __future__ import annotations

import re
from pathlib import Path

# CSS classes, which `keys.js` has too: of the form, and of a button, before the button's action
FORM = "agent-nb-form"
ACTION = "agent-nb-do-"
_PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
# sent without comments, indentation and empty lines
_SCRIPT = re.sub(
    r"\s*//.*|^\s+", "", Path(__file__).with_name("keys.js").read_text("utf-8"), flags=re.MULTILINE
)
KEYS = f'<img alt="" src="{_PIXEL}" onload="{_SCRIPT.strip()}">'
