"""What must not be in a page: tags, attributes, addresses and styles beyond the allowed ones."""

from __future__ import annotations

import re
from html.parser import HTMLParser

TAGS = (
    "a b br blockquote code col colgroup del details div em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span "
    "strong sub summary sup table tbody td tfoot th thead tr u ul var wbr abbr bdi caption dd dl dt"
)
ATTRIBUTES = (
    "style title href rel target src alt role open scope start class colspan rowspan align width height "
    "tabindex aria-label aria-live aria-valuemin aria-valuemax aria-valuenow"
)
CLASSES = {
    "agent-nb mathjax_ignore tex2jax_ignore",
    "mathjax_ignore tex2jax_ignore",
    "mathjax_process tex2jax_process",
}
FORBIDDEN = re.compile(
    r"(?<!list-style-)position|z-index|url\(|expression|behavior|@import|float|transform|opacity|(?<![a-z-])content\s*:|-moz-binding"
    r"|margin[a-z-]*:[^;]*-\d",
    re.IGNORECASE,
)


class Hazards(HTMLParser):
    """Collects forbidden parts of a page: tags, attributes, addresses and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS.split():
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            self._attribute(tag, name, value or "")

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name not in ATTRIBUTES.split():
            self.found.append(f"{tag}[{name}]")
        if name == "href" and not re.match(r"(https?://|mailto:)", value, re.I):
            self.found.append(f"href={value}")
        if name == "src" and not re.match(r"data:image/(png|jpeg|gif|webp);base64,", value):
            self.found.append(f"src={value[:60]}")
        if name == "class" and value not in CLASSES and not re.fullmatch("an-[a-z]{3}", value):
            self.found.append(f"class={value}")
        if name == "style" and FORBIDDEN.search(value):
            self.found.append(f"style={value}")

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.found.append("declaration")
