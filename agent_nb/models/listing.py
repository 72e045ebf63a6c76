"""Lists to choose a model from: the providers and configured endpoints, and the models of one.

Completion, the doctor and `%agent` show what can be chosen, before any model is used. So the list
of providers uses no network, and imports a plug-in of another package only if the configuration
sets options of it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import anyio

from ..errors import AgentError, ModelError, UsageError
from ..host import list_builtin, list_plugins
from . import choose, config
from .http.remote import LONGEST_NAME

_LIST_TIMEOUT = 15.0  # seconds
MISSING = "missing"
# how the texts of `Remote.access` begin, in the order in which the list shows their providers
_ACCESS = ("from", "not needed", MISSING)


class Provider(NamedTuple):
    """A provider or configured endpoint: its name, its server, where its key comes from.

    `server` holds the fault instead where the provider has one. `key`: words such as "from …",
    "not needed" or "missing: …", "" if unknown. `ready`: no key is missing, or the user has
    configured the provider.
    """

    name: str
    server: str
    key: str
    ready: bool


def list_known_models() -> dict[str, list[str]]:
    """Return each provider, by name, with the models known without asking its server.

    The models are named as `provider/name`. A faulty configuration counts as empty.
    """
    endpoints = {**config.KNOWN, **config.Config.load(lenient=True).endpoints}
    models = [
        *(f"{name}/{model}" for name, model in choose.DEFAULTS.items()),
        *(f"{name}/{endpoint.model}" for name, endpoint in endpoints.items() if endpoint.model),
        choose.LOCAL,
    ]
    names = sorted({*list_plugins("models"), *endpoints})
    return {name: [model for model in models if model.startswith(f"{name}/")] for name in names}


def list_providers() -> list[Provider]:
    """Return the providers: configured, then with a key, then those that need none, then others."""
    configured = config.Config.load(lenient=True).endpoints
    providers = []
    for name in {*list_plugins("models"), *config.KNOWN, *configured}:
        server, key = _describe_access(name, configured)
        ready = name in configured or not key.startswith(MISSING)
        providers.append(Provider(name, server, key, ready))
    return sorted(providers, key=lambda p: (p.name not in configured, _rank_access(p.key), p.name))


def _describe_access(name: str, configured: Collection[str]) -> tuple[str, str]:
    """Return, in words, where a provider's server is and where its key comes from."""
    if name in configured or name in config.KNOWN:
        return _ask_model(name)
    if name == "local":
        return "this process" if choose.is_local_installed() else "not installed", "not needed"
    if name == "scripted":
        return "script files", "not needed"
    return _ask_model(name) if name in list_builtin("models") else ("an installed package", "")


def _ask_model(name: str) -> tuple[str, str]:
    """Return the server and the source of its key, as a model object of the provider states them.

    The name of the model does not matter here, so it is `?`. A fault is returned in place of the
    server, so that it appears in the list.
    """
    try:
        model = choose.make_model(f"{name}/?")
        return str(getattr(model, "address", "")), str(getattr(model, "access", ""))
    except AgentError as fault:
        return str(fault), ""


def _rank_access(key: str) -> int:
    """Return the rank of a provider's `key` column: 0 for a key that was found comes first."""
    ranks = (n for n, beginning in enumerate(_ACCESS) if key.startswith(beginning))
    return next(ranks, len(_ACCESS))


async def list_models(provider: str) -> list[str]:
    """Return the models that a provider's server offers. Raises UsageError and ModelError."""
    if provider == "scripted":
        raise UsageError("The models of scripted are files: scripted/FILE.")
    model = choose.make_model(choose.LOCAL if provider == "local" else f"{provider}/?")
    ask = getattr(model, "models", None)
    if ask is None:
        raise UsageError(f"{provider} does not list its models. Name one: -m {provider}/NAME.")
    try:
        with anyio.fail_after(_LIST_TIMEOUT):
            names = await ask()
    except TimeoutError:
        raise ModelError(
            f"{provider} did not list its models within {_LIST_TIMEOUT:g} s.", code="timeout"
        ) from None
    finally:
        await model.aclose()
    return [name for name in names if _is_usable(name)]


def _is_usable(name: object) -> bool:
    """Return whether a user can write this model's name after `-m provider/`."""
    return (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST_NAME
        and name.isprintable()
        and not any(c.isspace() or c in "'\"" for c in name)
    )
