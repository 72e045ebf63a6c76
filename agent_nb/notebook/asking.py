"""Asking the user on the keyboard: a question about a tool call as one `input()` on the main thread.

Why: it works in every front end that has a keyboard for the kernel, and needs no widget.

Rules
- Everything that a model or tool wrote is shown as plain printable text: no control sequence, nothing that reorders the line.
- Whatever is not clearly a yes is a no; the end of input, an interrupt and three unclear answers are a no.
- Nobody to ask is None, and the approval gate says how to allow.
"""

from __future__ import annotations

import json
from typing import Any

from ..tools.base import Asker, Decision, Host, Question

LONGEST = 2000  # characters of an argument or preview
ATTEMPTS = 3
ANSWERS = {
    "y": Decision(True, by="stdin"),
    "yes": Decision(True, by="stdin"),
    "a": Decision(True, scope="tool", by="stdin"),
    "all": Decision(True, scope="tool", by="stdin"),
    "n": Decision(False, by="stdin", reason="the user said no"),
    "no": Decision(False, by="stdin", reason="the user said no"),
}


def stdin_asker(host: Host, allowed: bool) -> Asker:
    """Return an asker that uses `input()` on the main thread of `host`; it answers None unless `allowed`."""

    async def ask(question: Question) -> Decision | None:
        if not allowed:
            return None
        answer: Decision | None = await host.call(lambda: put(question))
        return answer

    return ask


def put(question: Question) -> Decision | None:
    """Ask on this thread and return the answer; None when there turns out to be no input."""
    text = wording(question)
    for _ in range(ATTEMPTS):
        try:
            said = input(text).strip().lower()
        except EOFError:
            return Decision(False, by="stdin", reason="the input ended")
        except NotImplementedError:  # ipykernel's StdinNotImplementedError
            return None
        if said in ANSWERS:
            return ANSWERS[said]
        text = "Please answer y, n or a: "
    return Decision(False, by="stdin", reason="no clear answer")


def wording(question: Question) -> str:
    """Return the question as text."""
    lines = [f"The agent wants to call {printable(question.name)}:"]
    lines += [f"  {printable(name)} = {_shown(value)}" for name, value in question.args.items()]
    if question.preview:
        lines.append(_clip(printable(question.preview)))
    return "\n".join([*lines, f"Allow it? [y]es, [n]o, [a]lways {printable(question.name)} in this run: "])


def printable(text: str) -> str:
    """Return `text` with everything that is not printable, line ends and tabs aside, as escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return _clip(printable(text)).replace("\n", "\n    ")


def _clip(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} [… {len(text) - LONGEST} more characters]"
