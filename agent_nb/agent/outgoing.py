"""Removes secrets ("keys") from a request, just before it goes to a model.

The log is filtered as it is written, but a request also contains text from elsewhere: instructions,
docstrings and defaults of tools, stop texts, older records.

Rules
- In a tool's schema, values (default, constant, example, pattern) with a key are left out: a model
  would repeat the marker that replaces the key.
- What must be sent exactly is not redacted: signatures and encrypted values of the provider,
  `extra_body`, names of the model and of tools. `require_no_keys` refuses a key in the last three.
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

# keywords of JSON Schema, by what they hold: a value, a list of values, schemas by name
_VALUE_KEYWORDS = ("default", "const", "pattern")
_LIST_KEYWORDS = ("enum", "examples")
_MAP_KEYWORDS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")


def redact_request(request: Request, redaction: Redaction) -> Request:
    """Return `request` with keys redacted, except in `extra_body` (see `require_no_keys`)."""
    value = redaction.value
    extra = request.settings.get("extra_body")
    settings = value({k: v for k, v in request.settings.items() if k != "extra_body"})
    return msgspec.structs.replace(
        request,
        messages=tuple(
            msgspec.structs.replace(m, blocks=tuple(_redact_block(b, redaction) for b in m.blocks))
            for m in request.messages
        ),
        tools=tuple(redact_tool(spec, redaction) for spec in request.tools),
        grammar=value(request.grammar),
        output=request.output and redact_schema(request.output, redaction),
        settings=settings if extra is None else {**settings, "extra_body": extra},
    )


def _redact_block(block: Block, redaction: Redaction) -> Block:
    """Return a block of a message with keys redacted, and without text inside its pictures."""
    if isinstance(block, ImageBlock):
        return _strip_picture(block)
    fields = {name: getattr(block, name) for name in block.__struct_fields__ if name != "pictures"}
    # the field whose value is the provider's own (signed or encrypted) and must return unchanged
    provider_field = {OpaqueBlock: "payload", ThoughtBlock: "opaque"}.get(type(block), "")
    clean = redaction.fields(fields, (provider_field,))
    if isinstance(block, ResultBlock) and block.pictures:
        clean["pictures"] = tuple(map(_strip_picture, block.pictures))
    return block if clean == fields else msgspec.structs.replace(block, **clean)


def _strip_picture(block: ImageBlock) -> ImageBlock:
    """Return an image without text chunks."""
    return msgspec.structs.replace(block, data=base64_without_text(block.data))


def redact_tool(spec: ToolSpec, redaction: Redaction) -> ToolSpec:
    """Return the spec of a tool with keys redacted."""
    parameters = _redact_schema(spec.parameters, redaction.value)
    return ToolSpec(spec.name, redaction.value(spec.description), parameters)


def redact_schema(output: OutputSchema, redaction: Redaction) -> OutputSchema:
    """Return the schema of an answer with keys redacted."""
    return OutputSchema(output.name, _redact_schema(output.schema, redaction.value))


def _redact_schema(schema: Any, redact: Callable[[Any], Any]) -> Any:
    """Return a schema with keys redacted in its texts; `redact` returns a JSON value redacted."""
    if isinstance(schema, list):
        return [_redact_schema(each, redact) for each in schema]
    if not isinstance(schema, Mapping):
        return redact(schema)
    members: dict[str, Any] = {}
    for name, member in schema.items():
        if name in _MAP_KEYWORDS and isinstance(member, Mapping):
            members[name] = {
                redact(key): _redact_schema(each, redact) for key, each in member.items()
            }
        # a value with a secret is left out: redacted it would be another constraint
        elif name in _LIST_KEYWORDS and isinstance(member, list):
            members[name] = [item for item in member if redact(item) == item]
        elif name not in _VALUE_KEYWORDS:
            members[name] = _redact_schema(member, redact)
        elif redact(member) == member:
            members[name] = member
    # an empty `enum` would allow no value
    return {
        name: member for name, member in members.items() if member or name not in _LIST_KEYWORDS
    }


def require_no_keys(
    model: str, tools: Sequence[ToolSpec], settings: Mapping[str, Any], redaction: Redaction
) -> None:
    """Raise UsageError if a text that must be sent unchanged holds a key."""
    sent_unchanged = (  # (the place to name, value) of each
        ("the name of the model", model),
        *(("the name of a tool", spec.name) for spec in tools),
        *_walk_texts("extra_body", settings.get("extra_body")),
    )
    for source, value in sent_unchanged:
        if redaction.value(value) != value:
            raise UsageError(
                f"There is a key in {source}, which would be sent as it is. Take it out; keys belong into `%agent key`."
            )


def _walk_texts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (path, text) for each scalar and member name; a name has the path of its object."""
    if isinstance(value, Mapping):
        for name, member in value.items():
            yield path, name
            yield from _walk_texts(f"{path}.{name}", member)
    elif isinstance(value, list | tuple):
        for number, member in enumerate(value):
            yield from _walk_texts(f"{path}[{number}]", member)
    else:
        yield path, value
