"""Which schemas of answers a server has refused, so that they are not sent to it again.

Only the words of a refusal show whether a server takes no schema at all, or not this one. After a
refusal a tool takes the answer instead.
"""

from __future__ import annotations

import re

import msgspec

from ...errors import ModelError
from ..messages import OutputSchema
from .errors import find_evidence

# statuses of a refused schema
_STATUSES = (400, 404, 405, 422, 500, 501)
# words of a refusal that is about the schema of the answer; the bare word "schema" counts only in a
# text without tools, functions and databases, which have schemas of their own
_ABOUT_SCHEMA = re.compile(
    r"response[ _]?format|response.?mime|json[ _]?(schema|mode|object)|structured[ _-]?(output|gener|decod|respon)"
    r"|output_(config|format)|text\.format|\bgrammar\b|guided[ _-]?(json|decod|gener|gramm)"
    r"|^(?!.*\b(tools?|functions?|database)\b).*\bschemas?\b",
    re.IGNORECASE | re.DOTALL,
)
# words of a server that takes no schema at all
_TAKES_NONE = re.compile(
    r"not? support|unsupported|does ?n.t support|not (be )?(enabled|allowed|available)"
    r"|unknown (field|param|arg|name)|unrecogni[sz]ed|unexpected (field|keyword|param|arg)|extra (inputs|fields)",
    re.IGNORECASE,
)


class SchemaRefusals:
    """The schemas that one server refused for one model."""

    def __init__(self) -> None:
        self._takes_schemas = True  # until the server says that it takes none
        self._refused: set[bytes] = set()  # encoded, because a schema has no hash

    def may_send(self, output: OutputSchema) -> bool:
        """Return whether the server has refused neither this schema nor all schemas."""
        return self._takes_schemas and msgspec.json.encode(output) not in self._refused

    def note_fault(self, fault: ModelError, output: OutputSchema | None) -> ModelError:
        """Remember `output` if `fault` refuses it, and give the fault the code `no_schema`.

        `output`: the schema that was sent, None if none was. Any other fault is returned unchanged.
        """
        message = find_evidence(fault)
        if output is None or fault.status not in _STATUSES or not _ABOUT_SCHEMA.search(message):
            return fault
        self._refused.add(msgspec.json.encode(output))
        self._takes_schemas = self._takes_schemas and not _TAKES_NONE.search(message)
        return ModelError(str(fault), status=fault.status, code="no_schema", raw=fault.raw)
