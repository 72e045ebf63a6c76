"""The sampling settings under their common names, checked once for all providers.

Each provider's request encoder translates them.

| name | value |
|---|---|
| temperature, top_p | numbers |
| seed, max_tokens | whole numbers |
| stop | a text or a list of texts |
| reasoning | an effort (`none minimal low medium high xhigh`), a budget in tokens, or true/false |
| extra_body | an object whose fields go into the request, in place of fields of the same name |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError, did_you_mean, unknown_name

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
# tokens of reasoning for each effort but "none", in rising order
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 49152}
# setting -> the types of its values
_TYPES: dict[str, tuple[type, ...]] = {
    "temperature": (int, float),
    "top_p": (int, float),
    "seed": (int,),
    "max_tokens": (int,),
    "stop": (str, list, tuple),
    "reasoning": (str, int, bool),
    "extra_body": (dict,),
}
NAMES = tuple(_TYPES)


def check_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not None. Raises UsageError for a wrong name or value."""
    chosen = {name: value for name, value in settings.items() if value is not None}
    for name, value in chosen.items():
        if name not in _TYPES:
            hint = did_you_mean(str(name), NAMES, written=repr)
            raise UsageError(unknown_name("setting", name, NAMES, hint=hint, label="Settings"))
        # a bool is an int in Python, but only `reasoning` may be one
        if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and name != "reasoning"):
            raise UsageError(f"The setting {name} cannot be {value!r}.")
    if not all(isinstance(text, str) for text in list_stops(chosen.get("stop", []))):
        raise UsageError(f"The setting stop cannot be {chosen['stop']!r}.")
    reasoning = chosen.get("reasoning")
    if isinstance(reasoning, str) and reasoning not in EFFORTS:
        raise UsageError(
            f"The setting reasoning is one of {', '.join(EFFORTS)}, or a number of tokens; not {reasoning!r}."
        )
    return chosen


def read_effort(reasoning: str | int | bool) -> str:
    """Return the effort for a reasoning setting.

    For a number of tokens: the lowest effort whose budget is at least as large, else "xhigh".
    """
    if isinstance(reasoning, str):
        return reasoning
    if isinstance(reasoning, bool):
        return "medium" if reasoning else "none"
    if reasoning > 0:
        return next((name for name, tokens in _BUDGETS.items() if reasoning <= tokens), "xhigh")
    return "none"


def read_budget(reasoning: str | int | bool) -> int:
    """Return the tokens that a reasoning setting allows (0: no reasoning)."""
    if isinstance(reasoning, str):
        return _BUDGETS.get(reasoning, 0)
    if isinstance(reasoning, bool):
        return _BUDGETS["medium"] if reasoning else 0
    return max(0, reasoning)


def add_extra_body(body: dict[str, Any], settings: Mapping[str, Any], shared: str = "") -> None:
    """Put the fields of the setting `extra_body` into the request `body`.

    A field that `body` already has is replaced. Only the field named `shared`, if it is an object
    in both, gets the members of both.
    """
    extra = settings.get("extra_body", {})
    ours, theirs = body.get(shared), extra.get(shared)
    body |= extra
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        body[shared] = {**ours, **theirs}


def list_stops(value: str | list[str] | tuple[str, ...]) -> list[str]:
    """Return the setting `stop` as a list."""
    return [value] if isinstance(value, str) else list(value)
