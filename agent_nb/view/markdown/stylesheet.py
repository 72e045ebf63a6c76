"""Rendered markdown for the live view, with repeated inline styles moved into a style sheet.

Why: a saved page needs its styles inline. A live answer is sent many times, and inline styles would
be half of it. An element without its style looks the same below `ROOT`, where `css` applies.
`compact` runs after the sanitiser, and removes only style attributes that `html` wrote.
"""

from __future__ import annotations

import re
from functools import cache

from .. import theme
from .html import UNBROKEN, selectors

_TAG = re.compile(r'<([a-z][a-z0-9]*) style="([^"]*)"')
# the widget that holds a text; twice, to weigh more than the rules of the front end
ROOT = ".agent-nb .agent-nb-prose.agent-nb-prose"


def compact(html: str) -> str:
    """Return rendered markdown without the styles of `css`; a code token gets its class."""
    short = _TAG.sub(lambda match: _short_tags().get(match.groups(), match[0]), html)
    return short.replace(f' style="{theme.LINK}"', "")


@cache
def css() -> str:
    """Return the style sheet of rendered markdown."""
    rules = selectors()
    rules["code"] += f";font-family:var(--jp-code-font-family,{theme.MONOSPACE})"  # as in an output
    return "\n".join(f"{ROOT} {selector}{{{rule}}}" for selector, rule in rules.items())


@cache
def _short_tags() -> dict[tuple[str, ...], str]:
    """Return (tag, its declarations) → the start of the tag for the live view."""
    short: dict[tuple[str, ...], str] = {}
    for selector, rules in selectors().items():
        if selector.startswith("."):
            short["span", rules] = f'<span class="{selector[1:]}"'
        else:
            tag = selector.split()[-1]  # a selector such as `tbody tr` is of its last tag
            # a block of code without a long line lacks `UNBROKEN`
            short[tag, rules] = short[tag, rules.removesuffix(f";{UNBROKEN}")] = f"<{tag}"
    return short
