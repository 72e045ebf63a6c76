"""Where the keys of providers come from.

Why: no key belongs in a cell. It comes, in this order, from what `%agent key` was told in this session, the environment, a `.env` file
(in the current folder or one above it, up to the repository or the home folder), the system's keyring, or Colab's secrets.

Rules
- A `Key` never shows its value: not in repr, not in a message. `describe` says which key comes from where.
- Only keys are read from `.env`: a file of somebody's repository must not be able to redirect them to another address.
- Nothing is written but the keyring, and that only when asked.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import UsageError

SERVICE = "agent_nb"
VARIABLES: dict[str, tuple[str, ...]] = {
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
_memory: dict[str, str] = {}
_colab: dict[str, str] = {}
_hidden: set[str] = set()


class Key:
    """A key and where it comes from; its repr hides the value."""

    __slots__ = ("source", "value")

    def __init__(self, value: str, source: str) -> None:
        self.value = value
        self.source = source

    def __repr__(self) -> str:
        return f"<Key from {self.source}>"


def remember(provider: str, value: str, *, keyring: bool = False) -> str:
    """Keep a key for this session, and in the system's keyring when asked. Returns where it is kept.

    Raises UsageError when the value cannot be a key, or the keyring cannot be written.
    """
    value = checked(value, "what was entered")
    _memory[provider] = value
    if not keyring:
        return "this session"
    try:
        import keyring as store  # type: ignore[import-not-found, unused-ignore]  # optional

        store.set_password(SERVICE, provider, value)
    except ModuleNotFoundError:
        raise UsageError("The keyring is not installed. Install it with: pip install keyring") from None
    except Exception as error:
        raise UsageError(f"The keyring refused the key ({type(error).__name__}); it is kept for this session.") from None
    return "the keyring"


def hide(value: str) -> None:
    """Let a value that is no provider's key (a server's token) count as a secret of this session."""
    _hidden.add(value)


def forget(provider: str) -> None:
    """Drop what was remembered for this session."""
    _memory.pop(provider, None)


def find(provider: str, variables: Iterable[str] | None = None) -> Key | None:
    """Return the key of a provider, or None. `variables` are the names to look for; the known ones if not given.

    Raises UsageError when what was found cannot be a key (white space, other than printable ASCII).
    """
    names = tuple(VARIABLES.get(provider, ()) if variables is None else variables)
    for value, source in _candidates(provider, names):
        if value.strip():
            return Key(checked(value, source), source)
    return None


def checked(value: str, source: str) -> str:
    """Return a key without the white space around it. Raises UsageError, which does not show it."""
    value = value.strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise UsageError(f"The key from {source} cannot be one: it holds white space or characters that keys do not have.")
    return value


def _candidates(provider: str, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    yield _memory.get(provider, ""), "%agent key"
    for name in names:
        yield os.environ.get(name, ""), name
    for name in names:
        yield _dotenv().get(name, ""), f"{name} in .env"
    yield _from_keyring(provider), "the keyring"
    for name in names:
        yield _from_colab(name), f"{name} in Colab's secrets"


def describe() -> list[tuple[str, str, str]]:
    """Return (provider, variable to set, where its key comes from or "") for every provider with keys; never a value."""
    rows = []
    for provider in sorted({*VARIABLES, *_memory}):
        key = find(provider)
        rows.append((provider, next(iter(VARIABLES.get(provider, ())), ""), key.source if key else ""))
    return rows


def secrets() -> set[str]:
    """Return the values of all keys that are known here, for the secret filter: session, environment, `.env`, Colab."""
    names = {name for group in VARIABLES.values() for name in group}
    dotenv = _dotenv()
    found = {*_hidden, *_memory.values(), *_colab.values(), *(os.environ.get(n, "") for n in names), *(dotenv.get(n, "") for n in names)}
    return {value.strip() for value in found if value.strip()}


def _dotenv() -> dict[str, str]:
    path = _dotenv_file()
    if path is None:
        return {}
    try:
        return parse_dotenv(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return {}


def _dotenv_file() -> Path | None:
    try:
        here, home = Path.cwd(), Path.home()
    except (OSError, RuntimeError):
        return None
    for folder in (here, *here.parents):
        if (folder / ".env").is_file():
            return folder / ".env"
        if (folder / ".git").exists() or folder == home:
            return None
    return None


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables of a `.env` file: `NAME=value` or `export NAME="value"`; `#` begins a comment."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name.isidentifier():
            continue
        if value[:1] in ("'", '"') and value.count(value[0]) > 1:
            value = value[1:].split(value[0], 1)[0]
        else:
            value = value.split(" #", 1)[0].rstrip()
        found[name] = value
    return found


def _from_keyring(provider: str) -> str:
    if "keyring" not in sys.modules and importlib.util.find_spec("keyring") is None:
        return ""
    try:
        import keyring as store

        return store.get_password(SERVICE, provider) or ""
    except Exception:
        return ""


def _from_colab(name: str) -> str:
    if "google.colab" not in sys.modules:
        return ""
    if name not in _colab:
        try:
            from google.colab import userdata  # type: ignore[import-not-found, unused-ignore]  # there is no such package elsewhere

            _colab[name] = userdata.get(name) or ""
        except Exception:
            _colab[name] = ""
    return _colab[name]
