"""Replace texts that no output of a kernel may show, such as a tape's address, in its messages.

Why in messages: an error, a print and a widget reach the notebook file by different ways, but each
as a message that the kernel's session packs. Only packed JSON is searched: other packers write the
length of a text before the text. A text that is divided between two messages is not found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any


def hide_texts(shell: Any, replacements: Callable[[], Mapping[str, str]]) -> Callable[[], None]:
    """Replace texts in the messages of a kernel until the returned function is called.

    `replacements` returns text -> its replacement. The shortest text must be part of all others: a
    message without it needs no work. For any other message `replacements` is called again, and
    longer texts are replaced first.
    """
    session = getattr(getattr(shell, "kernel", None), "session", None)
    if session is None:
        return lambda: None
    pack = session.pack
    needle = _escape_json(min(replacements(), key=len))

    def pack_hiding(content: Any) -> bytes:
        packed: bytes = pack(content)
        if needle in packed and packed[:1] == b"{":
            texts = replacements()
            for text in sorted(texts, key=len, reverse=True):
                packed = packed.replace(_escape_json(text), _escape_json(texts[text]))
        return packed

    def stop() -> None:
        if session.pack is pack_hiding:  # else other code has wrapped it, and it stays below
            session.pack = pack

    session.pack = pack_hiding
    return stop


def _escape_json(text: str) -> bytes:
    return json.dumps(text)[1:-1].encode()
