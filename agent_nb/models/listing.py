"""What there is to choose from: the providers and configured endpoints, and the models of one.

Rules
- The list of providers uses no network and loads no package of others; each fault is a row.
- A server has `SECONDS` to list its models. Its names are hostile text: one that no `-m` could name
  is left out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import anyio

from ..errors import AgentError, ModelError, UsageError
from ..host import list_builtin, list_plugins
from . import choose, config

SECONDS = 15.0
LONGEST = 200  # characters of a name
MISSING = "missing"
_READY = ("from", "not needed", MISSING)


class Provider(NamedTuple):
    """A provider or configured endpoint: its name, its server, where its key comes from.

    `ready`: no key is missing, or the user has configured it.
    """

    name: str
    server: str
    key: str
    ready: bool


def list_known_models() -> dict[str, list[str]]:
    """Return each provider, in order, with the models known without asking its server.

    The models are named as `provider/name`. Of a faulty configuration, which its use reports,
    nothing counts.
    """
    ends = {**config.KNOWN, **config.Config.load(lenient=True).endpoints}
    models = [
        *(f"{name}/{model}" for name, model in choose.DEFAULTS.items()),
        *(f"{name}/{end.model}" for name, end in ends.items() if end.model),
        choose.LOCAL,
    ]
    names = sorted({*list_plugins("models"), *ends})
    return {name: [model for model in models if model.startswith(f"{name}/")] for name in names}


def list_providers() -> list[Provider]:
    """Return the providers: the configured ones first, then those with a key, those that need none,
    and the rest.
    """
    mine = config.Config.load(lenient=True).endpoints
    names = {*list_plugins("models"), *config.KNOWN, *mine}
    providers = [_provider(name, mine) for name in names]
    return sorted(providers, key=lambda p: (p.name not in mine, _rank(p.key), p.name))


def _provider(name: str, mine: Collection[str]) -> Provider:
    server, key = _standing(name, mine)
    return Provider(name, server, key, name in mine or not key.startswith(MISSING))


def _standing(name: str, mine: Collection[str]) -> tuple[str, str]:
    """Return the address of a provider's server, and how it stands with its key."""
    if name in mine or name in config.KNOWN:
        return _server(name)
    if name == "local":
        return "this process" if choose.local_installed() else "not installed", "not needed"
    if name == "scripted":
        return "script files", "not needed"
    return _server(name) if name in list_builtin("models") else ("an installed package", "")


def _server(name: str) -> tuple[str, str]:
    try:
        model = choose.make_model(f"{name}/?")
        return str(getattr(model, "address", "")), str(getattr(model, "access", ""))
    except AgentError as fault:
        return str(fault), ""


def _rank(key: str) -> int:
    return next((n for n, word in enumerate(_READY) if key.startswith(word)), len(_READY))


async def list_models(provider: str) -> list[str]:
    """Return the models that a provider's server offers. Raises UsageError and ModelError."""
    if provider == "scripted":
        raise UsageError("The models of scripted are files: scripted/FILE.")
    model = choose.make_model(choose.LOCAL if provider == "local" else f"{provider}/?")
    ask = getattr(model, "models", None)
    if ask is None:
        raise UsageError(f"{provider} does not list its models. Name one: -m {provider}/NAME.")
    try:
        with anyio.fail_after(SECONDS):
            listed = await ask()
    except TimeoutError:
        raise ModelError(
            f"{provider} did not list its models within {SECONDS:g} s.", code="timeout"
        ) from None
    finally:
        await model.aclose()
    return [name for name in listed if _fit(name)]


def _fit(name: object) -> bool:
    return (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST
        and name.isprintable()
        and not any(c.isspace() or c in "'\"" for c in name)
    )
