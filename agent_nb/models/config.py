"""Endpoints: well-known ones, and the user's own in a configuration file.

So `-m lab/qwen3` works on a laboratory's server as `-m openai/…` does. The file is `config.toml` in
the user's configuration folder for `agent_nb`, or the file that AGENT_NB_CONFIG names:

    model = "lab/qwen3"                 # used when AGENT_NB_MODEL is not set; "lab/qwen3,ollama/x":
                                        # the next one answers when one is away or overloaded
    [endpoints.lab]
    base_url = "http://lab:8000/v1"
    api = "openai"                      # openai (the default), openai-responses or anthropic
    key = "LAB_API_KEY"                 # the variable that holds the key, if one is needed
    dialect = "xml"                     # how its models write, if not natively
    context = 32768                     # tokens
    vision = false                      # its models see no pictures (default: unknown, so pictures
                                        # are sent until the server refuses them)
    headers = { "x-team" = "blue" }
    timeouts = { first_byte = 300 }     # seconds: connect, first_byte, idle
    rpm = 60                            # requests per minute, of all agents of this process
    concurrency = 4                     # requests at once
    cache = false                       # anthropic only: mark nothing for the provider's cache
    prices = { input = 1.0, output = 4.0, cached = 0.1, cache_written = 1.25 }
                                        # US dollars per million tokens; by default tokens of a
                                        # cache cost what the input costs
    [endpoints.lab.prices."qwen3-*"]    # or a table for each pattern of model names
    input = 0.2
    output = 0.6

    [prices]                            # prices by whole names, for any provider
    "openai/gpt-5*" = { input = 1.25, output = 10.0, cached = 0.125 }

    [endpoints.openai]                  # a provider that is built in needs no base_url
    prices = { input = 1.0, output = 4.0 }

A relative AGENT_NB_CONFIG means another file in every folder, perhaps by a stranger: the user must
allow it (`host.trust`).
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from ..errors import AgentError, NotAllowed, UsageError
from ..host import Offer, list_plugins
from .prices import Prices, by_model

_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The time limits of a request to a model, in seconds."""

    connect: _Positive = 10.0  # to open a connection
    first_byte: _Positive = 120.0  # to the first byte of the answer
    idle: _Positive = 60.0  # between two reads of the answer


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server: its address, the API it speaks, and what its models need.

    The fields are the keys of the file, described above; `model` is the server's default model.
    """

    base_url: str = ""
    api: str = "openai"
    key: str = ""
    dialect: str = ""
    context: _Count = 0
    headers: dict[str, str] = {}
    timeouts: Timeouts = Timeouts()
    model: str = ""
    vision: bool | None = None
    prices: dict[str, float | Prices] = {}
    cache: bool = True
    rpm: _Count = 0
    concurrency: _Count = 0

    def __post_init__(self) -> None:
        by_model(self.prices)  # raises ValueError for wrong prices

    def __repr__(self) -> str:
        # the address may have a password, and a header may be a key
        return f"<Endpoint of the API {self.api}>"


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration file. Raises ValueError for an endpoint with a wrong name or address."""

    model: str = ""
    endpoints: dict[str, Endpoint] = {}
    prices: dict[str, Prices] = {}

    def __post_init__(self) -> None:
        for name, endpoint in self.endpoints.items():
            if not name or "/" in name:
                raise ValueError(f"the name {name!r} of an endpoint is empty or has a slash")
            if not endpoint.base_url and name not in KNOWN and name not in list_plugins("models"):
                raise ValueError(f"the endpoint {name!r} needs a base_url")

    def list_addresses(self) -> dict[str, str]:
        """Return base URL -> name, for the well-known endpoints and the endpoints of the file."""
        own = {name: each for name, each in self.endpoints.items() if each.base_url}
        return {each.base_url: name for name, each in {**KNOWN, **own}.items()}

    @staticmethod
    def path() -> Path:
        """Return the path of the configuration file, whether it exists or not."""
        import platformdirs

        if file := os.environ.get("AGENT_NB_CONFIG"):
            return Path(os.path.expanduser(file))
        return Path(platformdirs.user_config_dir("agent_nb", appauthor=False)) / "config.toml"

    @classmethod
    def load(cls, *, lenient: bool = False) -> Config:
        """Return the configuration; an empty one without a file, or on any fault if `lenient`.

        Raises UsageError if it cannot be read or AGENT_NB_CONFIG names no file, and NotAllowed if
        its path is relative and the user has not allowed it.
        """
        file = cls.path()
        try:
            config, offer = cls.read(file)
            if not file.is_absolute() and not offer.is_allowed():
                raise NotAllowed(f"{offer.refusal}.", offer)
        except FileNotFoundError:
            if os.environ.get("AGENT_NB_CONFIG") and not lenient:
                raise UsageError(f"AGENT_NB_CONFIG names {file}, which does not exist.") from None
            return cls()
        except AgentError:
            if not lenient:
                raise
            return cls()
        return config

    @classmethod
    def read(cls, file: Path) -> tuple[Config, Offer]:
        """Return the configuration in a file, and the offer that the user may allow.

        Raises FileNotFoundError, and UsageError if it cannot be read.
        """
        try:
            content = file.read_bytes()
            text = content.decode("utf-8-sig")
        except FileNotFoundError:
            raise
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The configuration {file} cannot be read: {error}.") from None
        try:
            config = msgspec.convert(tomllib.loads(text), cls)
        # ValueError: also of a number with thousands of digits
        except (ValueError, RecursionError) as error:
            raise UsageError(f"The configuration {file} is wrong: {error}.") from None
        return config, Offer.of("configuration", file, _describe(config), content)


# label before the slash of a model's name -> (base URL of a well-known server, its default model);
# "": the server has no default model
_SERVERS = {
    "groq": ("https://api.groq.com/openai/v1", "openai/gpt-oss-120b"),
    "openrouter": ("https://openrouter.ai/api/v1", "openrouter/auto"),
    "deepseek": ("https://api.deepseek.com/v1", "deepseek-chat"),
    "mistral": ("https://api.mistral.ai/v1", "mistral-medium-latest"),
    "xai": ("https://api.x.ai/v1", "grok-4"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash"),
    "cerebras": ("https://api.cerebras.ai/v1", "gpt-oss-120b"),
    "together": ("https://api.together.xyz/v1", ""),
    "fireworks": ("https://api.fireworks.ai/inference/v1", ""),
    "cohere": ("https://api.cohere.ai/compatibility/v1", "command-a-03-2025"),
    "huggingface": ("https://router.huggingface.co/v1", ""),
    "perplexity": ("https://api.perplexity.ai", "sonar"),
    "moonshot": ("https://api.moonshot.ai/v1", ""),
}
KNOWN = {label: Endpoint(base_url=url, model=model) for label, (url, model) in _SERVERS.items()}


def _describe(config: Config) -> str:
    """Return in words what a configuration decides, for the user who must allow it."""
    model = [f"chooses the model {config.model}"] if config.model else []
    servers = [
        (
            f"sends what is asked of {name}/… to {endpoint.base_url}"
            if endpoint.base_url
            else f"sets how {name}/… is asked"
        )
        + (f" with the key in {endpoint.key}" if endpoint.key else "")
        for name, endpoint in sorted(config.endpoints.items())
    ]
    prices = ["sets prices"] if config.prices else []
    return ", ".join([*model, *servers, *prices]) or "decides nothing"
