"""The keys of a question: A, D, E press its buttons, Shift+Enter sends fields, Escape goes back.

Why: ipywidgets has no key handler, and JupyterLab takes letters for itself while a button has the
focus (A inserts a cell, D D deletes this one).

How: an HTML widget is not sanitised in a live view, so an image in it can add listeners to the form
around it (`keys.js`). While the form has the focus, a listener at the window gets each key before
JupyterLab, and before the text areas, which pass no key on. Where a front end forbids such a
handler, Tab, Space and Enter still reach and press every button.

Rules
- The HTML is a constant, with no text from a model.
- Letters act while a button of the form has the focus: not while a field has it, not with Shift,
  Ctrl, Alt or Meta, not as repeats of a held key. A click beside the buttons gives no focus.
- Enter alone also sends the reason of a denial.
- A field sends its value when it loses the focus, so a key takes the focus away before it presses.
- Only a press moves the focus: to controls that it opened or brought back, or, after an answer, to
  the cell, so that a second press does not answer the next question.
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
