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

from ....agent import Configuration, OutputType, SchemaType
from ....errors import UsageError
from ....wire import Redaction
from .tool_reference import ToolReference, find_tool, import_attribute, make_references

POLICIES = ("ask", "auto", "deny")
#: Attributes of an agent that are plain values; `Configuration` takes them under the same names.
VALUES = ("system", "approve", "limits", "settings", "name", "memory", "thought_tags")


class OutputSpec(msgspec.Struct, frozen=True):
    """A type of answers: its name, its schema, and `module:name` if a module has it."""

    name: str
    schema: dict[str, Any]
    where: str = ""


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one agent; `options` are arguments of `Configuration`.

    `addresses`: where its models are asked, "" for one without.
    """

    model: str
    addresses: tuple[str, ...]
    options: dict[str, Any]
    tools: tuple[ToolReference, ...] = ()
    output: OutputSpec | None = None


def spec_of(agent: Configuration, redaction: Redaction) -> AgentSpec:
    """Return what travels of an agent. Raises UsageError for what cannot."""
    model = agent.choice.portable()
    if agent.approve not in POLICIES:
        raise UsageError(
            f"The policy file {agent.approve} does not travel to workers. Decide with approve='auto' or approve='deny', or map without client=."
        )
    agent.require_no_keys(model, redaction)
    options = {name: getattr(agent, name) for name in VALUES} | {
        "dialect": agent.asked_dialect,
        "model_source": agent.choice.source,
        "folder": os.path.abspath(agent.folder) if len(agent.tools) else ".",
    }
    spec = AgentSpec(
        model=model,
        addresses=_addresses(agent),
        options=options,
        tools=make_references(agent.tools),
        output=None if agent.output is None else _describe_type(agent.output),
    )
    return msgspec.convert(redaction.value(msgspec.to_builtins(spec)), AgentSpec)


def agent_of(spec: AgentSpec) -> Configuration:
    """Return the agent in this process. Raises UsageError for what this process lacks."""
    tools, folder = [find_tool(reference) for reference in spec.tools], spec.options["folder"]
    if not os.path.isdir(folder):
        raise UsageError(
            f"The tools of the agent look into {folder}, which this worker does not have. Share that folder, or leave the tools out."
        )
    agent = Configuration(spec.model, tools, namespace={}, **spec.options)
    models = agent.choice.models
    for address, here, model in zip(spec.addresses, _addresses(agent), models, strict=False):
        if address != here:
            raise UsageError(
                f"The model {model.name} is asked at {address or 'no address'}, but the environment of this worker sends it to {here or 'no address'}."
                " Set the same base URL for the worker (OPENAI_BASE_URL, or the endpoint in its AGENT_NB_CONFIG). Nothing was sent."
            )
    return agent if spec.output is None else agent.answering(_type_of(spec.output))


def _addresses(agent: Configuration) -> tuple[str, ...]:
    return tuple(str(getattr(model, "address", "")) for model in agent.choice.models)


def _describe_type(output: OutputType) -> OutputSpec:
    module, name = (getattr(output.kind, a, "") for a in ("__module__", "__qualname__"))
    importable = module in sys.modules and module != "__main__"
    same = importable and vars(sys.modules[module]).get(name) is output.kind
    return OutputSpec(output.name, output.schema, f"{module}:{name}" if same else "")


def _type_of(output: OutputSpec) -> OutputType:
    """Return the type, from its module if this process has the same one, else from its schema."""
    module, _, name = output.where.partition(":")
    if module:
        with suppress(Exception):  # whatever the import of a module raises
            kind = OutputType(import_attribute(module, name))
            if kind.schema == output.schema:
                return kind
    return SchemaType(output.name, output.schema)
