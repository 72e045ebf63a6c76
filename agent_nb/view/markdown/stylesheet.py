"""Rendered markdown for the live view, with repeated inline styles moved into a style sheet.

Why: a saved page needs its styles inline. A live answer is sent many times, and inline styles would
be half of it.

Rules
- `compact` runs after the sanitiser. It removes only style attributes that `html` wrote.
- An element without its style looks the same below `ROOT`, where `css` applies.
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
    """Return rendered markdown without the styles of `css`."""
    return _TAG.sub(_shorten_tag, html).replace(f' style="{theme.link()}"', "")


@cache
def css() -> str:
    """Return the style sheet of rendered markdown."""
    rules = selectors()
    rules["code"] += f";font-family:var(--jp-code-font-family,{theme.MONOSPACE})"  # as in an output
    return "\n".join(f"{ROOT} {selector}{{{rule}}}" for selector, rule in rules.items())


def _shorten_tag(match: re.Match[str]) -> str:
    """Return the start of a tag without a style that `css` has; a code token gets its class."""
    tag, rules = match.groups()
    if _rules_of_tags().get(tag) in {rules, f"{rules};{UNBROKEN}"}:
        return f"<{tag}"
    name = _classes_of_rules().get(rules) if tag == "span" else None
    return match.group() if name is None else f'<span class="{name}"'


@cache
def _rules_of_tags() -> dict[str, str]:
    """Return the declarations of each tag; a selector such as `pre code` is of its last tag."""
    return {s.split()[-1]: rules for s, rules in selectors().items() if not s.startswith(".")}


@cache
def _classes_of_rules() -> dict[str, str]:
    """Return the class of code tokens for the declarations that each of them has."""
    return {rules: s.removeprefix(".") for s, rules in selectors().items() if s.startswith(".")}
