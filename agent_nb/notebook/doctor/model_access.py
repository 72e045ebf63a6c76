"""Checks of the model that a run would use, and of the API keys for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ...errors import AgentError
from ...host.trust import HOW, allowed
from .findings import Finding


def model(configured: str) -> Iterator[Finding]:
    """Check the model that a run would use; `configured` comes from the notebook."""
    from ...models import choose

    try:
        name, where = choose.choose("", configured)
    except AgentError as fault:
        first, _, rest = str(fault).partition("\n")
        todo = " · ".join(line.strip() for line in rest.splitlines())
        yield Finding("model", "missing", f"{first} Recorded runs replay without one.", todo)
        return
    for one in choose.each(name):
        yield _access(one, where)


def _access(name: str, where: str) -> Finding:
    """Return whether the provider of a model is known and its key is there."""
    from ...models import choose, keys

    provider = name.partition("/")[0]
    if provider not in choose.providers():
        return Finding(
            "model",
            "broken",
            f"{name} ({where}): there is no provider {provider!r}",
            f"known: {', '.join(choose.providers())}",
        )
    try:
        lacking = (
            provider in keys.VARIABLES
            and keys.find(provider) is None
            and not os.environ.get(f"{provider.upper()}_BASE_URL")
        )
    except AgentError as fault:
        return Finding("model", "broken", f"{name} ({where}): {fault}")
    todo = f"set {keys.VARIABLES[provider][0]}, or %agent key {provider}" if lacking else ""
    return Finding(
        "model",
        "broken" if lacking else "ok",
        f"{name} ({where}){': it has no key' if lacking else ''}",
        todo,
    )


def keys_found() -> Iterator[Finding]:
    """Check which API keys are known, by their place."""
    from ...models import keys

    found = [(provider, source) for provider, _, source in keys.describe() if source]
    for provider, source in found:
        yield Finding(f"key {provider}", "ok", f"from {source}")
    if (offer := keys.offered()) is not None and not allowed(offer):
        yield Finding("keys of the folder", "missing", f"{offer}; not used", HOW)
    if not found:
        yield Finding("keys", "missing", "none is set; models on this machine need none")
