"""What there is to choose from: the providers and configured endpoints, and the models of one.

Rules
- The list of providers uses no network and loads no package of others; each fault is a row.
- A server has `SECONDS` to list its models. Its names are hostile text: one that no `-m` could name
  is left out.
"""

from __future__ import annotations

import anyio

from ..errors import AgentError, ModelError, UsageError
from ..host import plugins
from . import choose, config

SECONDS = 15.0
LONGEST = 200  # characters of a name
_PLACES = {
    "local": ("this process", "needs no key"),
    "scripted": ("script files", "needs no key"),
}
_ORDER = ("key from", "needs no key")


def providers() -> list[tuple[str, str, str]]:
    """Return (name, server, key) of every provider: the configured ones first, then those with a
    key, those that need none, and the rest.
    """
    mine = _configured()
    ours = plugins.builtin("models")
    rows = []
    for name in sorted({*ours, *plugins.names("models"), *config.KNOWN, *mine}):
        if name not in mine and name in _PLACES:
            rows.append((name, *_PLACES[name]))
        elif name in ours or name in config.KNOWN or name in mine:
            rows.append((name, *_server(name)))
        else:
            rows.append((name, "an installed package", ""))
    rows.sort(key=lambda row: (row[0] not in mine, _rank(row[2]), row[0]))
    return rows


def _configured() -> dict[str, config.Endpoint]:
    try:
        return config.load().endpoints
    except AgentError:  # its use reports it
        return {}


def _server(name: str) -> tuple[str, str]:
    """Return the address of a provider's server, and how it stands with its key."""
    try:
        model = choose.make(f"{name}/?")
        return str(getattr(model, "address", "")), str(getattr(model, "access", ""))
    except AgentError as fault:
        return str(fault), ""


def _rank(access: str) -> int:
    return next((n for n, word in enumerate(_ORDER) if access.startswith(word)), len(_ORDER))


async def names(provider: str) -> list[str]:
    """Return the models that a provider's server offers. Raises UsageError and ModelError."""
    if provider == "scripted":
        raise UsageError("The models of scripted are files: scripted/FILE.")
    model = choose.make(choose.LOCAL if provider == "local" else f"{provider}/?")
    ask = getattr(model, "models", None)
    if ask is None:
        raise UsageError(f"{provider} does not list its models. Name one: -m {provider}/NAME.")
    try:
        with anyio.fail_after(SECONDS):
            found = await ask()
    except TimeoutError:
        raise ModelError(
            f"{provider} did not list its models within {SECONDS:g} s.", code="timeout"
        ) from None
    finally:
        await model.aclose()
    return [name for name in found if _fit(name)]


def _fit(name: object) -> bool:
    return (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST
        and name.isprintable()
        and not any(c.isspace() or c in "'\"" for c in name)
    )
