"""What a model returns, one stream part at a time.

A decoder turns bytes into parts, a dialect turns text among them into finer parts, `agent.turn`
turns them into events. So the other rooms see one form of answer, whatever a provider sends.

Rules
- The text of a part is a delta: it continues the text of the part before. An empty delta is emitted
  only if it carries something else, such as `opaque` or the name of a call.
- `block` is the provider's id of a text or thought, "" if the answer has only one of that kind.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Part(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="part"):
    """Base of all parts."""


class Text(Part, frozen=True, tag="text", gc=False):
    """A delta of text: what the model wrote or, after a dialect, the answer in it."""

    text: str
    block: str = ""


class Answer(Part, frozen=True, tag="answer"):
    """A delta of an answer that the model gives by calling the final tool (`agent.typed`)."""

    text: str
    block: str = ""


class Thought(Part, frozen=True, tag="thought"):
    """A delta of reasoning, with `attributes` (thought type, confidence …).

    `opaque` holds its signature or encrypted form.
    """

    text: str
    block: str = ""
    attributes: dict[str, Any] | None = None
    opaque: Any = None


class Close(Part, frozen=True, tag="close"):
    """The text or thought block `block` has ended. `incomplete`: it was cut off."""

    block: str = ""
    incomplete: bool = False


class CallDelta(Part, frozen=True, tag="call_delta"):
    """A fragment of a call's arguments. `index` distinguishes the parallel calls of one message."""

    text: str
    index: int = 0
    call_id: str = ""
    name: str = ""


class Call(Part, frozen=True, tag="call"):
    """A tool call, read to its end.

    `args` is the parsed object, `raw_args` the text as written, `call_id` "" if the model sent
    none. `fault` says why the call must not run; it then gets an error result. `incomplete`: it was
    cut off.
    """

    name: str
    args: dict[str, Any]
    raw_args: str = ""
    call_id: str = ""
    index: int = 0
    incomplete: bool = False
    fault: str = ""


class Execute(Part, frozen=True, tag="execute"):
    """The batch of calls before this part is complete and must run now.

    `fault`: why some text of the batch could not be read as a call, in words for the model.
    """

    fault: str = ""


class End(Part, frozen=True, tag="end"):
    """The model declared its turn finished (`<end>`, `§END`)."""


class Fault(Part, frozen=True, tag="fault"):
    """A fault in the stream.

    `code` is a stable word (`malformed_execute`, `forged_results`, `provider`, `limit` …), `raw`
    the faulty text, `position` its offset in code points from the start of the turn. `feedback`:
    the model gets it back as an error result.
    """

    code: str
    message: str
    raw: str = ""
    position: int = 0
    feedback: bool = False
    retryable: bool = False


class Usage(Part, frozen=True, tag="usage"):
    """Tokens of this response so far; the last Usage counts. `events.usage` explains the fields.

    `cost`: US dollars as the provider reports them, None if it does not. `raw` is the provider's
    own object, unchanged.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    cost: float | None = None
    estimated: bool = False
    raw: Any = None

    def with_tokens_of(self, earlier: Usage) -> Usage:
        """Return this usage plus the tokens of an earlier request of the same answer."""
        return msgspec.structs.replace(
            self,
            input=self.input + earlier.input,
            output=self.output + earlier.output,
            cached=self.cached + earlier.cached,
            cache_written=self.cache_written + earlier.cache_written,
            reasoning=self.reasoning + earlier.reasoning,
        )


class Finish(Part, frozen=True, tag="finish"):
    """Why the provider stopped, in its own words (`stop`, `tool_calls`, `length`, `end_turn` …)."""

    reason: str


class Head(Part, frozen=True, tag="head"):
    """The response began: HTTP status, the model's own name and the response id, for the record."""

    status: int = 0
    model: str = ""
    response_id: str = ""


class Continued(Part, frozen=True, tag="continued"):
    """The provider paused its answer; one more request, which counts as a turn, continues it."""


class Extra(Part, frozen=True, tag="extra"):
    """A field or object of the provider without a part of its own; kept as an extension event."""

    namespace: str
    name: str
    payload: Any = None


class Resend(Part, frozen=True, tag="resend"):
    """A block to send back unchanged in the next turn, such as signed thinking."""

    provider: str
    payload: Any
