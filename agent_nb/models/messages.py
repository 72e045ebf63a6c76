"""What is sent to a model: messages made of blocks, tool specifications, and one request.

`agent.history` builds messages from events, a dialect rewrites them, a model encodes them for its
provider. These types are the form that all three share; the file imports no other of the package.

Rule: an opaque value is understood only by the API that sent it. `provider` names this API: it is
the constant `PROVIDER` of the API's decoder.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class Block(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="block"):
    """Base of the pieces of a message."""


class TextBlock(Block, frozen=True, tag="text"):
    """Plain text."""

    text: str


class ThoughtBlock(Block, frozen=True, tag="thought"):
    """Reasoning of an earlier turn; `opaque` goes back unchanged to the API that sent it."""

    text: str
    opaque: Any = None

    def opaque_of(self, provider: str) -> dict[str, Any] | None:
        """Return `opaque` if it came from this provider, else None."""
        opaque = self.opaque
        is_own = isinstance(opaque, dict) and opaque.get("provider") == provider
        return opaque if is_own else None


class CallBlock(Block, frozen=True, tag="call"):
    """A tool call that the assistant made (native dialect); `raw_args` is its JSON as written."""

    call_id: str
    name: str
    args: dict[str, Any]
    raw_args: str = ""


class ResultBlock(Block, frozen=True, tag="result"):
    """The result of a call.

    `content` is the result as text. Text dialects use `value`, the same result as a JSON value, and
    `printed`, the output that the tool printed; for native calls that output is part of `content`.
    The text of `content` names the `pictures`.
    """

    call_id: str
    name: str
    content: str
    error: bool = False
    value: Any = None
    printed: str = ""
    pictures: tuple[ImageBlock, ...] = ()


class ImageBlock(Block, frozen=True, tag="image"):
    """An image as base64 `data` (image/png, image/jpeg, image/gif or image/webp)."""

    media_type: str
    data: str

    @property
    def data_url(self) -> str:
        """The image as a `data:` URL."""
        return f"data:{self.media_type};base64,{self.data}"


class OpaqueBlock(Block, frozen=True, tag="opaque"):
    """A provider's own block, sent back unchanged; other providers leave it out."""

    provider: str
    payload: Any

    def payload_of(self, provider: str) -> dict[str, Any] | None:
        """Return the payload if it is an object that came from this provider, else None."""
        is_own = self.provider == provider and isinstance(self.payload, dict)
        return self.payload if is_own else None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message: a role and its blocks in order."""

    role: Role
    blocks: tuple[Block, ...] = ()

    @property
    def text(self) -> str:
        """The text blocks as one text, with a blank line where calls or opaque blocks stood.

        Thoughts, results and pictures are left out.
        """
        texts = [""]
        for block in self.blocks:
            if isinstance(block, TextBlock):
                texts[-1] += block.text
            elif isinstance(block, CallBlock | OpaqueBlock) and texts[-1].strip():
                texts.append("")
        return "\n\n".join(t for t in texts if t)

    def payloads_of(self, provider: str) -> list[dict[str, Any]]:
        """Return the objects in its opaque blocks that came from this provider, in order."""
        opaque = (b.payload_of(provider) for b in self.blocks if isinstance(b, OpaqueBlock))
        return [payload for payload in opaque if payload is not None]


def text_message(role: Role, text: str) -> Message:
    """Return a message of one text block."""
    return Message(role, (TextBlock(text),))


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as described to a model; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class OutputSchema(msgspec.Struct, frozen=True):
    """The type of the answer: a `name` for the provider, and its JSON Schema, an object."""

    name: str
    schema: dict[str, Any]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model.

    `tools` are sent natively only if `native_tools`. `grammar` is an llguidance grammar for models
    that take one, or "". `output` is the type of the answer, for models that take its schema, or
    None. `settings`: those of the module `settings`, not yet checked.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    native_tools: bool = False
    grammar: str = ""
    output: OutputSchema | None = None
    settings: dict[str, Any] = {}

    @property
    def system(self) -> str:
        """The text of the system messages, for APIs that take it apart from the others."""
        return "\n\n".join(m.text for m in self.messages if m.role == "system" and m.text)
