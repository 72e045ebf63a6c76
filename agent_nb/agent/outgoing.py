"""Remove keys from requests, just before they go to a model.

Why one place, this late: the log is filtered as it is written, but a request also contains text
from elsewhere: instructions, docstrings and defaults of tools, stop texts, older records.

Rules
- Every text of a request passes the secret filter. Media, signatures and encrypted values of the
  provider stay unchanged, except text chunks in a PNG.
- In a tool's schema, values (default, constant, example, pattern) with a key are left out: a model
  would repeat the marker.
- `extra_body` and the names of the model and of tools must be sent exactly, so they cannot be
  filtered: a key in them is a UsageError that names the place, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..errors import UsageError
from ..models import (
    Block,
    ImageBlock,
    OpaqueBlock,
    OutputSchema,
    Request,
    ResultBlock,
    ThoughtBlock,
    ToolSpec,
)
from ..wire import Redaction, base64_without_text

_VALUES = ("default", "const", "pattern")
_LISTS = ("enum", "examples")
# their members are schemas by name
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")


def redact_request(request: Request, redaction: Redaction) -> Request:
    """Return `request` with keys redacted."""
    value = redaction.value
    extra = request.settings.get("extra_body")
    settings: dict[str, Any] = value(
        {k: v for k, v in request.settings.items() if k != "extra_body"}
    )
    return msgspec.structs.replace(
        request,
        messages=tuple(
            msgspec.structs.replace(m, blocks=tuple(_block(b, redaction) for b in m.blocks))
            for m in request.messages
        ),
        tools=tuple(redact_tool(spec, redaction) for spec in request.tools),
        grammar=value(request.grammar),
        output=request.output and redact_schema(request.output, redaction),
        settings=settings if extra is None else {**settings, "extra_body": extra},
    )


def _block(block: Block, redaction: Redaction) -> Block:
    if isinstance(block, ImageBlock):
        return _picture(block)
    fields = {name: getattr(block, name) for name in block.__struct_fields__ if name != "pictures"}
    own = {OpaqueBlock: "payload", ThoughtBlock: "opaque"}.get(type(block), "")
    clean = redaction.fields(fields, (own,))
    if isinstance(block, ResultBlock) and block.pictures:
        clean["pictures"] = tuple(map(_picture, block.pictures))
    return block if clean == fields else msgspec.structs.replace(block, **clean)


def _picture(block: ImageBlock) -> ImageBlock:
    return msgspec.structs.replace(block, data=base64_without_text(block.data))


def redact_tool(spec: ToolSpec, redaction: Redaction) -> ToolSpec:
    """Return the spec of a tool with keys redacted."""
    return ToolSpec(
        spec.name, redaction.value(spec.description), _schema(spec.parameters, redaction.value)
    )


def redact_schema(output: OutputSchema, redaction: Redaction) -> OutputSchema:
    """Return the schema of an answer with keys redacted."""
    return OutputSchema(output.name, _schema(output.schema, redaction.value))


def _schema(schema: Any, value: Callable[[Any], Any]) -> Any:
    if isinstance(schema, list):
        return [_schema(inner, value) for inner in schema]
    if not isinstance(schema, Mapping):
        return value(schema)
    members: dict[str, Any] = {}
    for name, held in schema.items():
        if name in _MAPS and isinstance(held, Mapping):
            members[name] = {value(key): _schema(inner, value) for key, inner in held.items()}
        # values with a secret are left out: a redacted one would be another constraint
        elif name in _LISTS and isinstance(held, list):
            members[name] = [item for item in held if value(item) == item]
        elif name not in _VALUES:
            members[name] = _schema(held, value)
        elif value(held) == held:
            members[name] = held
    return {name: held for name, held in members.items() if held or name not in _LISTS}


def require_no_keys(
    model: str, tools: Sequence[ToolSpec], settings: Mapping[str, Any], redaction: Redaction
) -> None:
    """Raise UsageError if a text that must be sent unchanged holds a key."""
    for source, held in _exact(model, tools, settings):
        if redaction.value(held) != held:
            raise UsageError(
                f"There is a key in {source}, which would be sent as it is. Take it out; keys belong into `%agent key`."
            )


def _exact(
    model: str, tools: Sequence[ToolSpec], settings: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    yield "the name of the model", model
    yield from (("the name of a tool", spec.name) for spec in tools)
    yield from _fields("extra_body", settings.get("extra_body"))


def _fields(path: str, held: Any) -> Iterator[tuple[str, Any]]:
    """Yield every text of a JSON value with its place; a member's name has its object's place."""
    if isinstance(held, Mapping):
        for name, inner in held.items():
            yield path, name
            yield from _fields(f"{path}.{name}", inner)
    elif isinstance(held, list | tuple):
        for number, inner in enumerate(held):
            yield from _fields(f"{path}[{number}]", inner)
    else:
        yield path, held
