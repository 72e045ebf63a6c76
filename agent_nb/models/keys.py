"""Where the keys of providers come from.

Keys do not belong in cells. A key comes, in this order, from `%agent key` in this session, the
environment, the system's keyring, Colab's secrets, or the nearest `.env` file (`host.dotenv`).

Rules
- A `Key` never shows its value: not in repr, not in a message.
- Only keys are used from `.env`, and only once the user allows it (`host.trust`): a cloned
  repository must not redirect requests, and the owner of a key can read the prompts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from ..errors import UsageError
from ..host import DIVERTED, Offer, import_library, is_from_project, read_dotenv, without_project
from ..wire import Unpicklable, environment_secrets

SERVICE = "agent_nb"
OPENAI_HOST = "api.openai.com"
_session_keys: dict[str, str] = {}  # provider -> its key for this session
_keyring_keys: dict[str, str] = {}  # provider -> the key that the keyring has given
_colab_secrets: dict[str, str] = {}  # variable -> Colab's secret of that name, "" if it has none
_other_secrets: set[str] = set()  # secrets of this session that are not keys


class Key(Unpicklable):
    """A key and where it comes from; its repr hides the value.

    `VARIABLES`: the environment variables of each known provider, the recommended one first. The
    parameter `variables` of a method replaces those of its provider.
    """

    VARIABLES: ClassVar[dict[str, tuple[str, ...]]] = {
        "openai": ("OPENAI_API_KEY",),
        "anthropic": ("ANTHROPIC_API_KEY",),
        "groq": ("GROQ_API_KEY",),
        "openrouter": ("OPENROUTER_API_KEY",),
        "deepseek": ("DEEPSEEK_API_KEY",),
        "mistral": ("MISTRAL_API_KEY",),
        "xai": ("XAI_API_KEY",),
        "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "cerebras": ("CEREBRAS_API_KEY",),
        "together": ("TOGETHER_API_KEY",),
        "fireworks": ("FIREWORKS_API_KEY",),
        "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
        "huggingface": ("HF_TOKEN",),
        "perplexity": ("PERPLEXITY_API_KEY",),
        "moonshot": ("MOONSHOT_API_KEY",),
    }

    def __init__(self, value: str, source: str) -> None:
        self.value = value
        self.source = source

    def __repr__(self) -> str:
        return f"<Key from {self.source}>"

    @classmethod
    def find(cls, provider: str, variables: Iterable[str] | None = None) -> Key | None:
        """Return the key of a provider, or None.

        Raises UsageError if the value cannot be a key (white space, characters other than printable
        ASCII).
        """
        own = cls.find_own(provider, variables)
        offer = None if own else cls.find_offer(provider, variables)
        if offer is not None and offer.is_allowed():
            names = _list_variables(provider, variables)
            for name, value in _select_filled(names, read_dotenv()[1]):
                return cls(_check_value(value, f"{name} in .env"), f"{name} in .env")
        return own

    @classmethod
    def find_own(cls, provider: str, variables: Iterable[str] | None = None) -> Key | None:
        """Return the user's own key of a provider, ignoring `.env`; otherwise like `find`."""
        for value, source in _list_candidates(provider, _list_variables(provider, variables)):
            if value.strip():
                return cls(_check_value(value, source), source)
        return None

    @classmethod
    def find_offer(
        cls,
        provider: str = "",
        variables: Iterable[str] | None = None,
        *,
        folder: Path | None = None,
    ) -> Offer | None:
        """Return the offer of a folder's `.env` if it has a key of the provider, allowed or not.

        `provider` "" stands for any known one, `folder` None for the current folder.
        """
        known = [name for group in cls.VARIABLES.values() for name in group]
        wanted = _list_variables(provider, variables) if provider else known
        path, values = read_dotenv(folder)
        if path is None or not any(_select_filled(wanted, values)):
            return None
        # one permission covers all keys of the file
        names = dict.fromkeys(name for name, _ in _select_filled((*known, *wanted), values))
        return Offer.of("keys", path, f"has {' and '.join(names)}")

    @classmethod
    def find_withheld_offer(
        cls, provider: str, variables: Iterable[str] | None = None
    ) -> Offer | None:
        """Return the folder's offer of a key that the user lacks and has not allowed, or None."""
        offer = cls.find_offer(provider, variables)
        withheld = offer is not None and not offer.is_allowed()
        return offer if withheld and cls.find_own(provider, variables) is None else None

    @staticmethod
    def keep(provider: str, value: str, *, keyring: bool = False) -> str:
        """Store a key for this session, with `keyring` also in the keyring; return where it is.

        Raises UsageError if the value cannot be a key, or if the keyring cannot be written: then
        the key holds for this session only.
        """
        value = _check_value(value, "what was entered")
        _session_keys[provider] = value
        if not keyring:
            return "this session"
        try:
            with without_project():  # it looks for plug-ins
                store = import_library("keyring")
                if store is not None:
                    store.set_password(SERVICE, provider, value)
        except Exception as error:
            raise UsageError(
                f"The keyring refused the key ({type(error).__name__}); it is kept for this session."
            ) from None
        if store is None:
            raise UsageError("The keyring is not installed. Install it with: pip install keyring")
        return "the keyring"

    @classmethod
    def list_sources(cls) -> list[tuple[str, str, str]]:
        """Return (provider, variable to set, source of its key) for all that need keys.

        The variable is "" if the provider has no known one, the source "" if no key was found.
        """
        rows = []
        for provider in sorted({*cls.VARIABLES, *_session_keys}):
            key = cls.find(provider)
            variable = next(iter(cls.VARIABLES.get(provider, ())), "")
            rows.append((provider, variable, key.source if key else ""))
        return rows


def hide_secret(value: str) -> None:
    """Add a secret of this session that is not a provider's key, such as a server's token."""
    _other_secrets.add(value)


def forget(provider: str) -> None:
    """Drop the key of a provider that this session remembers; other sources keep theirs."""
    _session_keys.pop(provider, None)


def _check_value(value: str, source: str) -> str:
    """Return a key stripped of white space. Raises UsageError, without the value, for a bad one."""
    value = value.strip()
    position = next((n for n, sign in enumerate(value, 1) if not sign.isascii()), 0)
    if position:
        raise UsageError(
            f"The key from {source} cannot be one: its character {position} is not an ASCII character. Copy the key again from the provider's page."
        )
    if not value or not value.isprintable() or " " in value:
        raise UsageError(
            f"The key from {source} cannot be one: it holds white space or characters that keys do not have."
        )
    return value


def _list_candidates(provider: str, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield (value or "", source) from all sources but `.env`, in their order."""
    yield _session_keys.get(provider, ""), "%agent key"
    for name in names:
        # the value from before a tape changed the variable for other libraries
        yield DIVERTED.read_original(name), name
    yield _read_keyring(provider), "the keyring"
    for name in names:
        yield _read_colab_secret(name), f"{name} in Colab's secrets"


def _list_variables(provider: str, variables: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(Key.VARIABLES.get(provider, ()) if variables is None else variables)


def _select_filled(names: Iterable[str], values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the (name, value) pairs of these names that have a value."""
    return ((name, values[name]) for name in names if values.get(name, "").strip())


def collect_secrets(chosen: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the secret values that a run redacts, by name: `chosen`, or all known ones if None.

    These are the secrets of the environment, `.env`, this session and the configuration, and those
    that Colab and the keyring gave before; neither is asked here.
    """
    if chosen is not None:
        return chosen
    dotenv = read_dotenv()[1]
    # `get`, because another thread may delete a variable meanwhile
    environment = {name: os.environ.get(name, "") for name in os.environ}
    names = {name for group in Key.VARIABLES.values() for name in group}
    values = {
        *_other_secrets,
        *_session_keys.values(),
        *_colab_secrets.values(),
        *_keyring_keys.values(),
        *(environment.get(n, "") for n in names),
        *(dotenv.get(n, "") for n in names),
    }
    distinct = sorted({value.strip() for value in values if value.strip()})
    return {
        **environment_secrets(environment),
        **{f"{name} in .env": value for name, value in environment_secrets(dotenv).items()},
        **_list_configured_secrets({**dotenv, **environment}),
        **{f"key {number}": value for number, value in enumerate(distinct, 1)},
        **DIVERTED.secrets,
    }


def _list_configured_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets of configured endpoints: their keys, and headers that carry a key."""
    from .config import Config

    endpoints = Config.load(lenient=True).endpoints  # a fault is reported where it is used
    keys = {
        endpoint.key: variables[endpoint.key].strip()
        for endpoint in endpoints.values()
        if endpoint.key in variables
    }
    headers = {
        f"{label} {name}": value.strip()
        for label, endpoint in endpoints.items()
        for name, value in endpoint.headers.items()
    }
    # a key may be one word of a header (`Bearer KEY`): hide the last word too
    last_words = {
        name: value.split()[-1]
        for name, value in headers.items()
        if value and name.lower().endswith((" authorization", " cookie"))
    }
    return {**keys, **environment_secrets(headers), **last_words}


def _read_keyring(provider: str) -> str:
    """Return the key in the system's keyring; "" if it has none, whatever the reason."""
    try:
        store = import_library("keyring")
        if store is None:
            return ""
        with without_project():  # it looks for plug-ins
            key = store.get_password(SERVICE, provider) or ""
        _keyring_keys[provider] = key.strip()
        return key
    except Exception:  # locked or without a backend: the other sources must still be asked
        return ""


def _read_colab_secret(name: str) -> str:
    """Return Colab's secret of that name, "" elsewhere or without one; Colab is asked once."""
    colab = sys.modules.get("google.colab")
    if colab is None or is_from_project(colab):
        return ""
    if name not in _colab_secrets:
        try:
            from google.colab import userdata  # type: ignore[import-not-found, import-untyped, unused-ignore]  # only Colab has it

            _colab_secrets[name] = userdata.get(name) or ""
        except Exception:  # a missing secret, or one that this notebook may not read
            _colab_secrets[name] = ""
    return _colab_secrets[name]
