"""Runs as documents (markdown, HTML, text) or in a codec's format."""

from __future__ import annotations

from collections.abc import Sequence

from ...agent import Run
from ...codecs import Losses, encode
from ...errors import UsageError, unknown_name
from ...host import list_plugins
from ...view import make_bundle
from .html_page import render_page

# form of a document -> its MIME type
PAGES = {"markdown": "text/markdown", "html": "text/html", "text": "text/plain"}
# ending of a file -> form
ENDINGS = {
    "md": "markdown",
    "htm": "html",
    "txt": "text",
    "jsonl": "canonical",
    "ndjson": "canonical",
}


def is_page(form: str) -> bool:
    """Return whether a form is a document for people; a codec's format is JSON for programs."""
    return ENDINGS.get(form, form) in PAGES


def export(runs: Sequence[Run], form: str, losses: Losses | None = None) -> str:
    """Return runs in a form: markdown, html (a whole page), text, a codec's name, or a file ending.

    `losses` collects what a codec cannot write. Raises UsageError for an unknown form.
    """
    name = ENDINGS.get(form, form)
    if name == "html":
        return render_page(runs)
    if name in PAGES:
        return "\n".join(make_bundle(run.log)[PAGES[name]] + "\n" for run in runs)
    if name.partition(":")[0] not in list_plugins("codecs"):  # `codec` or `codec:form`
        raise UsageError(unknown_name("form", form, [*PAGES, *list_plugins("codecs")]))
    return "".join(
        text if text.endswith("\n") else f"{text}\n"
        for run in runs
        for text in encode(run.log, name, losses=losses)
    )
