"""The plain values of an agent that travel to workers; each worker makes its own agent of them.

The agent itself holds keys, connections and all objects that its functions refer to, and a
scheduler logs, stores and forwards every message. So secrets are redacted, and workers read keys
from their own environment. A worker whose environment names another server for the model refuses
the rows: a prompt must reach no server that the user did not choose.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import msgspec

from ....agent import Configuration, OutputType, SchemaType
from ....errors import UsageError
from ....wire import Redaction
from .tool_reference import ToolReference, find_tool, import_attribute, make_references

POLICIES = ("ask", "auto", "deny")
#: Attributes of an agent that are plain values; `Configuration` takes them under the same names.
VALUES = ("system", "approve", "limits", "settings", "name", "memory", "thought_tags")


class OutputSpec(msgspec.Struct, frozen=True):
    """A type of answers: its name, its schema, and `module:name` if a module defines it."""

    name: str
    schema: dict[str, Any]
    where: str = ""


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one agent; `options` are arguments of `Configuration`.

    `addresses`: those of the agent's models (`choice.models`), in order ("": it has none).
    """

    model: str
    addresses: tuple[str, ...]
    options: dict[str, Any]
    tools: tuple[ToolReference, ...] = ()
    output: OutputSpec | None = None


def spec_of(agent: Configuration, redaction: Redaction) -> AgentSpec:
    """Return the spec of an agent. Raises UsageError for an agent that cannot travel."""
    model = agent.choice.make_portable_name()
    if agent.approve not in POLICIES:
        raise UsageError(
            f"The policy file {agent.approve} does not travel to workers. Decide with approve='auto' or approve='deny', or map without client=."
        )
    agent.require_no_keys(model, redaction)
    options = {name: getattr(agent, name) for name in VALUES} | {
        "dialect": agent.dialect_name,
        "model_source": agent.choice.source,
        # only tools need the folder: without them a worker may lack it
        "folder": os.path.abspath(agent.folder) if len(agent.tools) else ".",
    }
    spec = AgentSpec(
        model=model,
        addresses=_list_addresses(agent),
        options=options,
        tools=make_references(agent.tools),
        output=None if agent.output is None else _describe_type(agent.output),
    )
    return msgspec.convert(redaction.value(msgspec.to_builtins(spec)), AgentSpec)


def agent_of(spec: AgentSpec) -> Configuration:
    """Make the agent in this process.

    Raises UsageError if a tool or the folder is missing here, or a model has another address.
    """
    tools = [find_tool(reference) for reference in spec.tools]
    folder = spec.options["folder"]
    if not os.path.isdir(folder):
        raise UsageError(
            f"The tools of the agent look into {folder}, which this worker does not have. Share that folder, or leave the tools out."
        )
    agent = Configuration(spec.model, tools, namespace={}, **spec.options)
    own_addresses = _list_addresses(agent)
    for address, own_address, model in zip(
        spec.addresses, own_addresses, agent.choice.models, strict=False
    ):
        if address != own_address:
            raise UsageError(
                f"The model {model.name} is asked at {address or 'no address'}, but the environment of this worker sends it to {own_address or 'no address'}."
                " Set the same base URL for the worker (OPENAI_BASE_URL, or the endpoint in its AGENT_NB_CONFIG). Nothing was sent."
            )
    return agent if spec.output is None else agent.with_output(_type_of(spec.output))


def _list_addresses(agent: Configuration) -> tuple[str, ...]:
    return tuple(str(getattr(model, "address", "")) for model in agent.choice.models)


def _describe_type(output: OutputType) -> OutputSpec:
    module, name = (getattr(output.kind, a, "") for a in ("__module__", "__qualname__"))
    importable = module in sys.modules and module != "__main__"  # a worker runs another `__main__`
    is_same = importable and vars(sys.modules[module]).get(name) is output.kind
    return OutputSpec(output.name, output.schema, f"{module}:{name}" if is_same else "")


def _type_of(output: OutputSpec) -> OutputType:
    """Return the type, from its module if this process has the same one, else from its schema."""
    module, _, name = output.where.partition(":")
    if module:
        with suppress(Exception):  # importing a module may raise anything
            kind = OutputType(import_attribute(module, name))
            if kind.schema == output.schema:
                return kind
    return SchemaType(output.name, output.schema)
