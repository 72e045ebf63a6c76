"""What travels to workers: the plain values of an agent, from which a worker makes its own.

Why: an agent holds keys, connections and whatever its functions refer to. A scheduler logs, stores
and forwards what it is given.

Rules
- Plain values only, as JSON. Secrets are redacted; workers read keys from their own environment.
- Tools and types travel by name (`tool_reference`); a type that no module has travels as its JSON
  schema, and the answer becomes a value of the type here.
- A model is asked at the same address by every worker: a worker whose environment names another
  server for it refuses the rows, and sends nothing there.
- What cannot travel is a UsageError before the first request.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import msgspec

from ....agent import Configuration, Limits, OutputType, SchemaType
from ....errors import UsageError
from ....wire import Redaction
from .tool_reference import ToolReference, find_tool, import_attribute, make_references

POLICIES = ("ask", "auto", "deny")


class OutputSpec(msgspec.Struct, frozen=True):
    """A type of answers: its name, its schema, and `module:name` if a module has it."""

    name: str
    schema: dict[str, Any]
    where: str = ""


class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The values of one agent. `addresses`: where its models are asked, "" for one without."""

    model: str
    addresses: tuple[str, ...]
    source: str = ""
    name: str = ""
    system: str = ""
    dialect: str = ""
    approve: str = "ask"
    limits: Limits = Limits()
    settings: dict[str, Any] = {}
    memory: str = "window"
    thought_tags: tuple[str, ...] = ()
    folder: str = ""
    tools: tuple[ToolReference, ...] = ()
    output: OutputSpec | None = None


def spec_of(agent: Configuration, redaction: Redaction) -> Spec:
    """Return what travels of an agent. Raises UsageError for what cannot."""
    model = agent.choice.portable()
    if agent.approve not in POLICIES:
        raise UsageError(
            f"The policy file {agent.approve} does not travel to workers. Decide with approve='auto' or approve='deny', or map without client=."
        )
    agent.require_no_keys(model, redaction)
    spec = Spec(
        model=model,
        addresses=_addresses(agent),
        source=agent.choice.source,
        name=agent.name,
        system=agent.system,
        dialect=agent.asked_dialect,
        approve=agent.approve,
        limits=agent.limits,
        settings=agent.settings,
        memory=agent.memory,
        thought_tags=agent.thought_tags,
        folder=os.path.abspath(agent.folder) if len(agent.tools) else "",
        tools=make_references(agent.tools),
        output=_output(agent),
    )
    plain = msgspec.json.decode(msgspec.json.encode(spec))
    return msgspec.convert(redaction.value(plain), Spec)


def agent_of(spec: Spec) -> Configuration:
    """Return the agent in this process. Raises UsageError for what this process lacks."""
    tools = [find_tool(reference) for reference in spec.tools]
    folder = spec.folder or "."
    if not os.path.isdir(folder):
        raise UsageError(
            f"The tools of the agent look into {folder}, which this worker does not have. Share that folder, or leave the tools out."
        )
    agent = Configuration(
        spec.model,
        tools,
        system=spec.system,
        dialect=spec.dialect,
        approve=spec.approve,
        limits=spec.limits,
        settings=spec.settings,
        name=spec.name,
        folder=folder,
        namespace={},
        memory=spec.memory,
        thought_tags=spec.thought_tags,
        model_source=spec.source,
    )
    for address, here, model in zip(
        spec.addresses, _addresses(agent), agent.choice.models, strict=False
    ):
        if address != here:
            raise UsageError(
                f"The model {model.name} is asked at {address or 'no address'}, but the environment of this worker sends it to {here or 'no address'}."
                " Set the same base URL for the worker (OPENAI_BASE_URL, or the endpoint in its AGENT_NB_CONFIG). Nothing was sent."
            )
    return agent if spec.output is None else agent.answering(_type_of(spec.output))


def _addresses(agent: Configuration) -> tuple[str, ...]:
    return tuple(str(getattr(model, "address", "")) for model in agent.choice.models)


def _output(agent: Configuration) -> OutputSpec | None:
    output = agent.output
    if output is None:
        return None
    kind: Any = output.kind
    module, name = getattr(kind, "__module__", ""), getattr(kind, "__qualname__", "")
    held = vars(sys.modules[module]).get(name) if module in sys.modules else None
    where = f"{module}:{name}" if held is kind and module != "__main__" else ""
    return OutputSpec(output.name, output.schema, where)


def _type_of(output: OutputSpec) -> OutputType:
    """Return the type, from its module if this process has the same one, else from its schema."""
    module, _, name = output.where.partition(":")
    if module:
        with suppress(Exception):  # whatever the import of a module raises
            kind = OutputType(import_attribute(module, name))
            if kind.schema == output.schema:
                return kind
    return SchemaType(output.name, output.schema)
