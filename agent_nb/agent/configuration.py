"""What the user configured an agent with: model, tools, limits, and what follows from them.

One run, the rows of a map, a replay and a worker on another machine are all assembled from these
values; `agent` starts runs.

Rule: a configuration holds no run state, so that runs of one agent may interleave.
"""

from __future__ import annotations

import copy
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..errors import UsageError, unknown_name
from ..events import Event, State
from ..host import Offer, load_plugin, read_launch, verify_libraries
from ..models import collect_secrets
from ..record import RunInputs
from ..tools import Toolset, load_checked_policy
from ..wire import Redaction, Unpicklable, encode_canonical, plain_value
from . import outgoing
from .attachments import pictures_of
from .clean_json import clean_value
from .compaction import STRATEGIES
from .limits import Limits, find_chosen, limits_from
from .model_choice import ModelChoice
from .typed.output_type import OutputType

if TYPE_CHECKING:
    from ..dialects import Dialect
    from ..models import Model
    from ..tools import ApprovalSource, Host, Policy

Function = TypeVar("Function", bound=Callable[..., Any])
# parameters that only code of this package passes: for cells, rows and workers
INTERNAL = frozenset(("host", "ask", "trace_id", "namespace", "late", "mentioned", "model_source"))


def _hide_internal(function: Function) -> Function:
    """Leave the `INTERNAL` parameters out of the signature that help shows."""
    signature = inspect.signature(function)
    public = [p for name, p in signature.parameters.items() if name not in INTERNAL]
    function.__signature__ = signature.replace(parameters=public)  # type: ignore[attr-defined]
    return function


class Configuration(Unpicklable):
    """The values of one agent; `rows.agent.Agent` documents the parameters that users know.

    The `INTERNAL` ones: `host` runs the tools, `ask` answers questions, `trace_id` names the trace.
    `namespace`: the variables that names of models and tools may mean. `late`: do not look up the
    model's dialect before it is needed, since a replay may not need it; this does not apply to a
    `dialect` that the user named. `mentioned` returns the names of tools in the notebook's code,
    for the policy. `model_source`: where the choice of the model came from, in words.
    """

    # the advice of the error for code that pickles an agent (`Unpicklable`)
    _instead = "Make the agent where it is used, in the function that a worker runs."

    @_hide_internal
    def __init__(
        self,
        model: Model | str | Sequence[Model | str] | None = None,
        tools: Iterable[Any] = (),
        *,
        system: str | None = None,
        dialect: str | None = None,
        approve: str | None = None,
        limits: Mapping[str, Any] | Limits | None = None,
        settings: Mapping[str, Any] | None = None,
        name: str = "",
        folder: str | os.PathLike[str] = ".",
        host: Host | None = None,
        ask: ApprovalSource | None = None,
        trace_id: str = "",
        secrets: Mapping[str, str] | None = None,
        namespace: Mapping[str, Any] | None = None,
        late: bool = False,
        memory: str = "window",
        thought_tags: Sequence[str] = (),
        mentioned: Callable[[], Collection[str]] = tuple,
        model_source: str = "",
        output: Any = None,
    ) -> None:
        verify_libraries()
        model, approve, limits = plain_value((model, approve, limits))
        for option, value in {"limits": limits, "settings": settings, "secrets": secrets}.items():
            if not isinstance(value, Mapping | Limits | None):
                raise UsageError(f"{option} is a {type(value).__name__}. Give a dict.")
        thought_tags = (thought_tags,) if isinstance(thought_tags, str) else tuple(thought_tags)
        dialect, name, system, memory, trace_id, thought_tags, settings = clean_value(
            plain_value((dialect, name, system, memory, trace_id, thought_tags, settings))
        )
        for option, value in {"dialect": dialect, "name": name, "system": system}.items():
            if not isinstance(value, str | None):
                raise UsageError(f"{option} is of type {type(value).__name__}. Give a text.")
        self.folder = os.fspath(folder)
        self.choice = ModelChoice(model, namespace or {}, self.folder, model_source)
        self._namespace, self._mentioned = namespace, mentioned
        self._dialect = dialect or ""
        # an unknown name fails now, not in the first run
        if self._dialect or not (late or read_launch().why_not_live):
            assert self.dialect
        self.tools = Toolset.resolve(tools, namespace or {})
        self.system = system or ""
        self.approve = approve or "ask"
        # `chosen_limits`: the names of the limits that the user chose
        self.limits, self.chosen_limits = limits_from(limits), find_chosen(limits)
        self.settings = dict(settings or {})
        try:  # they are recorded and sent
            encode_canonical(self.settings)
        except ValueError as error:
            raise UsageError(f"The settings are not JSON: {error}.") from None
        if memory not in STRATEGIES:
            raise UsageError(unknown_name("memory strategy", memory, STRATEGIES))
        self.memory = memory
        self.thought_tags = tuple(thought_tags)
        self.name = name
        self.host = host
        self.ask = ask
        self.trace_id = trace_id
        _read_secrets(secrets or {})  # raises for one that is not text
        self._secrets = secrets  # read for each use: the user may add further ones
        self.output = None if output is None else OutputType(output)

    @property
    def secrets(self) -> dict[str, str] | None:
        """The secrets that are set now, by name; None if the agent has no secrets of its own."""
        return None if self._secrets is None else _read_secrets(self._secrets)

    @property
    def model(self) -> Model:
        """The model. Raises UsageError if its name is unknown."""
        return self.choice.model

    @property
    def dialect(self) -> Dialect:
        """The user's dialect, else the model's. Raises UsageError if it or the model is unknown."""
        return self.dialect_of(self.model)

    @property
    def dialect_name(self) -> str:
        """The name of the dialect that the user chose ("": the model's dialect is used)."""
        return self._dialect

    def dialect_of(self, model: Model) -> Dialect:
        """Return the dialect for requests to `model`. Raises UsageError if it is unknown."""
        dialect: Dialect = load_plugin("dialects", self._dialect or model.dialect)
        return dialect

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The variables that a policy and a template see: the agent's, else the notebook's."""
        return vars(sys.modules["__main__"]) if self._namespace is None else self._namespace

    def policy(self) -> Policy:
        """Return the policy; its file is read now. Raises UsageError for a faulty policy."""
        return load_checked_policy(
            self.approve, self.folder, self.tools, self.namespace, self._mentioned
        )

    def offers(self, *, live: bool) -> list[Offer]:
        """Return the folder's offers (rules, keys) that a run needs and the user has not allowed.

        `live`: the run needs the model, and so its key. Raises UsageError for a faulty policy.
        """
        keys = [getattr(m, "withheld", None) for m in self.choice.models] if live else []
        offers = (self.policy().offer, *(key() for key in keys if key))
        return [offer for offer in offers if offer is not None]

    def redaction(self) -> Redaction:
        """Return a filter that removes the secrets known now from texts."""
        return Redaction(collect_secrets(self.secrets))

    def make_inputs(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
    ) -> RunInputs:
        """Return the inputs of a run, by which its record is found. The model is not needed."""
        redaction = self.redaction()
        pictures = pictures_of(attachments, redaction.value)
        text = redaction.value(clean_value(prompt))
        return self.make_redacted_inputs(redaction, text, pictures, history)

    def inputs(
        self,
        prompt: str,
        *,
        attachments: Sequence[Any] = (),
        history: Sequence[Sequence[Event]] = (),
    ) -> dict[str, str]:
        """Return the digests of the inputs of a run, by which `Match.find` finds its record."""
        return self.make_inputs(prompt, attachments=attachments, history=history).digests

    def with_host(
        self,
        *,
        host: Host | None,
        ask: ApprovalSource | None,
        trace_id: str | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """Return a copy with another host and approval source, for a cell or another agent's run.

        `trace_id`, `limits`: the other run's (None: unchanged).
        """
        trace_id = self.trace_id if trace_id is None else trace_id
        return self._copy(host=host, ask=ask, trace_id=trace_id, limits=limits or self.limits)

    def with_tools(self, tools: Toolset) -> Self:
        """Return a copy with other tools."""
        return self._copy(tools=tools)

    async def with_servers(
        self, redaction: Redaction, status: Callable[[str], object]
    ) -> tuple[Self, list[State]]:
        """Return a copy with the tools of the MCP servers that it refers to, and their lists.

        `status` receives what happens. Raises UsageError, ToolError for an unusable server.
        """
        tools, lists = await self.tools.with_servers(self.folder, status)
        events = [State(kind="mcp", payload=redaction.value(each)) for each in lists]
        return self.with_tools(tools), events

    def with_output(self, output: OutputType) -> Self:
        """Return a copy with another type of answers."""
        return self._copy(output=output)

    def _copy(self, **changes: Any) -> Self:
        child = copy.copy(self)
        vars(child).update(changes)
        return child

    async def aclose(self) -> None:
        """Close the model's connections, if the model was used."""
        await self.choice.aclose()

    def require_no_keys(self, model: str, redaction: Redaction) -> None:
        """Raise UsageError if a text that is sent unchanged holds a key.

        Such texts are the name `model`, the names of tools, and `extra_body`.
        """
        outgoing.require_no_keys(model, self.tools.specs, self.settings, redaction)

    def make_redacted_inputs(
        self,
        redaction: Redaction,
        prompt: str,
        pictures: Sequence[dict[str, Any]],
        history: Sequence[Sequence[Event]],
    ) -> RunInputs:
        """Return the inputs of a run whose prompt and attachments are redacted already."""
        settings = redaction.value(
            {"system": self.system, "sampling": self.settings, "dialect": self._dialect}
        )
        return RunInputs(
            prompt=prompt,
            attachments=pictures,
            model=self.choice.identity,
            tools=self.tools.chosen,
            settings=settings,
            history=history,
            output=self.output.described(redaction) if self.output is not None else None,
        )


def _read_secrets(secrets: Mapping[str, Any]) -> dict[str, str]:
    """Return the secrets that are set; one of pydantic's is read. Raises UsageError."""
    values = {}
    for name, secret in secrets.items():
        value = secret.get_secret_value() if hasattr(secret, "get_secret_value") else secret
        if not isinstance(value, str | None):
            raise UsageError(f"The secret {name!r} is of type {type(value).__name__}. Give a text.")
        if value is not None:
            values[name] = value
    return values
