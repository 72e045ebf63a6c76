"""The base of all models behind HTTP: key, connection, list of models, refused fields.

A provider's class adds `stream`, which hands a body and a decoder to `_send`, and `_adapt`.

Rules
- The key is looked up for each request, so a key that the user sets later is found.
- What the server refused, a field (`_adapt`) or a schema (`SchemaRefusals`), is not sent again by
  this object. Apart from that it holds no state of a stream.
- The model `*` stands for the first chat model that the server lists, else for the first model.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from ...errors import ModelError
from ...host import Offer
from ...wire import Unpicklable
from ..config import Timeouts
from ..keys import Key
from ..messages import OutputSchema, Request
from ..parts import Part
from ..prices import Prices
from ..tariff import Tariff
from .client import Http
from .errors import Peer, advise_key
from .limiter import configure_limiter
from .schema_refusals import SchemaRefusals
from .stream import Post, StreamDecoder, stream_answer

FIRST_MODEL = "*"  # as a model's name: the server's list decides (see the rules)
LONGEST_NAME = 200  # characters; longer names in a server's list do not count
# names of models that do not chat
_NOT_CHATTING = re.compile(
    r"embed|rerank|whisper|\btts|dall-e|moderation|transcri|image|diffusion|\bbge\b|\bclip\b", re.I
)
# (base URL, model) of models that refused tools; only tools that the user did not choose are then
# left out
_TAKE_NO_TOOLS: set[tuple[str, str]] = set()
_encode = msgspec.json.Encoder().encode
# what marks a picture in a body; within a text these quotes would be escaped
_PICTURE_MARKS = (b'"type":"image', b'"type":"input_image"')


@dataclass(frozen=True, kw_only=True, repr=False)  # a header may be a secret
class RemoteOptions:
    """How a model behind HTTP is reached, and the settings of its endpoint.

    `label` is the provider as the user writes it, `key_of` the provider whose key it uses ("":
    `label`), `variables` the variables that may hold this key. `cache`: whether requests mark what
    the provider may cache. `vision`: None if unknown. `dialect`: "" stands for the default of
    the provider's class. `context`: tokens, 0 if unknown. `prices`: pattern of model names ->
    prices. `rpm`: requests per minute, `concurrency`: requests at once; 0: unlimited.
    """

    base_url: str
    label: str
    key_of: str = ""
    variables: Sequence[str] = ()
    needs_key: bool = False
    headers: Mapping[str, str] | None = None
    timeouts: Timeouts | None = None
    dialect: str = ""
    context: int = 0
    prices: Mapping[str, Prices] | None = None
    cache: bool = True
    vision: bool | None = None
    rpm: int = 0
    concurrency: int = 0


class Remote(Unpicklable):
    """A model of a provider behind HTTP; the base of the providers' classes.

    A subclass sets the class attributes. `path`, `models_path`: where requests and the list of
    models are, below the base URL. `dialect`, `grammar`, `shots`: see `models.base`; the options
    may name another dialect. `refusals`: statuses by which its servers refuse an unknown field.
    """

    dialect = "native"
    grammar = False
    shots = False
    path = ""
    models_path = "/models"
    refusals: tuple[int, ...] = (400, 422)
    # for the error of pickling (`Unpicklable`)
    _instead = "Send its name, provider/name, and make the model where it is asked."

    def __init__(self, model: str, options: RemoteOptions) -> None:
        self.model = model
        self.name = f"{options.label}/{model}"
        self.label = options.label
        self.context = options.context
        self.vision = options.vision  # whether it sees pictures, None: unknown
        self.dialect = options.dialect or type(self).dialect
        self.cache = options.cache
        self._options = options
        self._key_of = options.key_of or options.label
        self._http = Http(options.base_url, options.timeouts)
        self._schemas = SchemaRefusals()
        endpoint, host = f"{options.label} {self._http.base_url}", self._http.host
        self.limiter = configure_limiter(endpoint, host, options.rpm, options.concurrency)

    @property
    def takes_tools(self) -> bool:
        """Whether a cell offers this model tools that its user did not choose.

        False if the dialect is not native, or if the model refused tools in this process.
        """
        return self.dialect == "native" and self._server_and_model not in _TAKE_NO_TOOLS

    @property
    def _variable(self) -> str:
        """The variable to set for the key, "" if unknown."""
        return next(iter(self._options.variables), "")

    @property
    def _server_and_model(self) -> tuple[str, str]:
        return self._http.base_url, self.model

    @property
    def address(self) -> str:
        """The base URL of the server."""
        return self._http.address

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def tariff(self) -> Tariff:
        """How requests to this model are priced."""
        prices = self._options.prices or {}
        return Tariff.at(self._http.base_url, self._http.host, self.model, prices)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def named(self) -> str:
        """Return the full name of the model; for `*` ask the server. Raises ModelError."""
        if self.model == FIRST_MODEL:
            self.model = await self._find_first_model()
            self.name = f"{self.label}/{self.model}"
        return self.name

    async def _find_first_model(self) -> str:
        """Return the first chat model that the server lists, else its first model."""
        advice, url = f"Name one: -m {self.label}/NAME.", self._http.address
        try:
            names = [name for name in await self._list_names() if len(name) <= LONGEST_NAME]
        except (ModelError, AttributeError, TypeError) as fault:
            reason = str(fault).rstrip(".")
            raise ModelError(
                f"No model was named, and {url} does not list its models ({reason}). {advice}",
                code="no_model",
                retryable=getattr(fault, "retryable", False),
                status=getattr(fault, "status", 0),
            ) from None
        if not names:
            raise ModelError(f"No model was named, and {url} has none. {advice}", code="no_model")
        return next((name for name in names if not _NOT_CHATTING.search(name)), names[0])

    async def models(self) -> list[str]:
        """Return the names of the server's models. Raises ModelError if it does not list them."""
        try:
            return sorted(await self._list_names())
        except ModelError as fault:
            if fault.code in ("no_key", "offline"):
                raise
            advice = f"It lists no models then; a model can still be named: -m {self.label}/NAME."
            if fault.status in (401, 403):
                advice = advise_key(self._make_peer(None))
            raise ModelError(f"{fault} {advice}", status=fault.status, code=fault.code) from None

    @property
    def access(self) -> str:
        """Where the key comes from, or what is missing. Raises UsageError for a malformed key."""
        key = Key.find(self._key_of, self._options.variables)
        if key is not None:
            return f"from {key.source}"
        return f"missing: set {self._variable}" if self._options.needs_key else "not needed"

    async def _list_names(self) -> list[str]:
        """Return the names in the server's own order."""
        answer = await self._http.get_json(self.models_path, self._headers(self._find_key()))
        # OpenAI's servers use `data`, some others `models`; without both, "" is reported below
        items = answer.get("data", answer.get("models", "")) if isinstance(answer, dict) else answer
        if not isinstance(items, list | None):
            raise ModelError(
                f"{self._http.host} answered without a list of models.", code="garbage"
            )
        names = [i.get("id") or i.get("name") if isinstance(i, dict) else i for i in items or ()]
        return [str(name).removeprefix("models/") for name in names if name]

    def takes_output(self, output: OutputSchema) -> bool:
        """Return whether the schema of an answer may be sent; False once the server refused it."""
        return self._schemas.may_send(output)

    def auth(self, key: str) -> dict[str, str]:
        """Return the headers that carry the key."""
        return {"authorization": f"Bearer {key}"}

    def _headers(self, key: Key | None) -> dict[str, str]:
        return {**(self.auth(key.value) if key else {}), **(self._options.headers or {})}

    def _find_key(self) -> Key | None:
        key = Key.find(self._key_of, self._options.variables)
        if key is None and self._options.needs_key:
            raise ModelError(
                f"There is no key for {self.label}. {advise_key(self._make_peer(None))}",
                code="no_key",
            )
        return key

    def withheld(self) -> Offer | None:
        """Return the folder's offer of a key in `.env` that the user lacks and has not allowed."""
        return Key.find_withheld_offer(self._key_of, self._options.variables)

    def _make_peer(self, key: Key | None) -> Peer:
        offer = self.withheld() if key is None else None
        return Peer(
            provider=self._key_of,
            model=self.model,
            url=self._http.base_url,
            variable=self._variable,
            has_key=key is not None,
            withheld=offer.refusal if offer is not None else "",
            secrets=(key.value,) if key else (),
        )

    async def _send(
        self,
        request: Request,
        make_body: Callable[[], Mapping[str, Any]],
        make_decoder: Callable[[int], StreamDecoder],
    ) -> AsyncGenerator[Sequence[Part], None]:
        """Send a request and yield the parts of its answer. Raises ModelError.

        Repeats it, at most twice, without the fields that the server refuses (`_adapt`).
        `make_body` is called for each attempt, `make_decoder` with the status of its response.
        """
        await self.named()
        for repetitions_left in (2, 1, 0):  # each drops another refused field
            body = make_body()
            try:
                async with aclosing(self._post(body, make_decoder)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except ModelError as fault:
                is_refusal = repetitions_left and fault.status in self.refusals
                # the body differs if a request beside this one has adapted already
                if not is_refusal or not (make_body() != body or self._adapt(fault)):
                    raise self._schemas.note_fault(fault, request.output) from None

    def _adapt(self, fault: ModelError) -> bool:
        """From now on, leave out what the server refused; return whether to repeat the request."""
        return False

    async def _post(
        self, body: Mapping[str, Any], make_decoder: Callable[[int], StreamDecoder]
    ) -> AsyncGenerator[Sequence[Part], None]:
        """Send one request and yield the parts of its answer."""
        key, encoded = self._find_key(), _encode(body)
        post = Post(
            path=self.path,
            body=encoded,
            headers=self._headers(key),
            peer=self._make_peer(key),
            tools=bool(body.get("tools")),
            images=any(mark in encoded for mark in _PICTURE_MARKS),
        )
        try:
            async with self.limiter.admit(self.model) as slot:
                try:
                    async with aclosing(
                        stream_answer(self._http, post, make_decoder, slot.note_answer)
                    ) as batches:
                        async for batch in batches:
                            yield batch
                except ModelError as fault:
                    slot.note_refusal(fault)
                    raise
        except ModelError as fault:
            if fault.code == "no_tools":
                _TAKE_NO_TOOLS.add(self._server_and_model)
            if fault.status == 404 and fault.code == "provider":
                raise await self._suggest_models(fault) from None
            raise

    async def _suggest_models(self, fault: ModelError) -> ModelError:
        """Return a 404 error with close names of the server's models, else with its first names.

        Return `fault` itself if the server lists none, or lists this model.
        """
        try:
            names = await self.models()
        except (ModelError, AttributeError, TypeError):
            return fault
        if self.model in names or not names:
            return fault
        close_names = difflib.get_close_matches(self.model, names, 3, 0.4) or names[:5]
        return ModelError(
            f"{fault} It has: {', '.join(close_names)}.", status=404, code=fault.code, raw=fault.raw
        )
