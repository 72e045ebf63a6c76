"""The JSON schema of a function's arguments, and a validator for what a model sends.

Why: a tool is a plain Python function, declared only by its annotations and docstring. Pydantic
handles the types; it is imported late (`plain_schema`).

Rules
- Near misses are repaired: "3" for an int, 3 for a str, a JSON text for a list or an object, null
  for a parameter with a default. Other values are refused with a message for the model.
- A model cannot set a parameter that is not in the schema, not even through `**kwargs`: the
  ToolContext, bound parameters, and parameters with a default whose type JSON cannot express.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any

from ..errors import ToolError, UsageError
from ..host import without_project
from ..wire import cut_end
from . import docstrings, signature
from .plain_schema import PLAIN_NAMES, describe_plain
from .typed_dicts import convert_typed_dicts

# keywords of JSON Schema whose value holds other schemas: schemas by name (`MAPS`), a list of them
# (`LISTS`), or a single one (`SINGLES`)
MAPS = ("properties", "$defs", "patternProperties")
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLES = ("items", "additionalProperties", "contains", "not", "propertyNames")
_POSITIONAL = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
_LONGEST_VALUE = 80  # characters of a wrong value that an error message repeats


class Arguments:
    """The parameters of one function: their schema, validation, and how to pass them."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        """Read the signature and docstring of `function`; `name` is for messages.

        Raises UsageError for a signature that cannot be read or that no JSON object can fill.
        """
        self.name = name
        self.doc = docstrings.parse_docstring(signature.read_docstring(function))
        self._signature, self._hints = signature.read_signature(function, name)
        #: the parameter that receives the ToolContext ("": none)
        self.context_parameter = signature.find_context_parameter(self._signature, self._hints)
        bound = signature.find_bound_names(function)
        unseen = {self.context_parameter, *bound}
        self._parameters = [p for p in self._signature if p.name not in unseen]
        schema = describe_plain(self._parameters, self._hints, self._describe)
        if schema is None:  # for pydantic; dropped parameters must not reach its model
            self._drop_inexpressible()
            schema = remove_titles(self._model.model_json_schema())
        self.schema = schema
        self.schema.setdefault("properties", {})
        names = {p.name for p in self._signature} | bound
        self._hidden = names - {p.name for p in self._parameters}

    @cached_property
    def _model(self) -> Any:
        """The pydantic model of the parameters, made when it is needed."""
        return self._build_model(self._parameters)

    @property
    def has_keywords_only(self) -> bool:
        """Whether every value may be passed by keyword."""
        others = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        return not any(p.kind in others for p in self._signature)

    def validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return `arguments` checked and converted to the annotated types.

        Raises ToolError that lists every invalid argument, and the parameters.
        """
        from pydantic import ValidationError

        # pydantic would take hidden parameters as values of `**kwargs`
        sent = {name: value for name, value in arguments.items() if name not in self._hidden}
        faults: list[Any] = [
            {"type": "extra_forbidden", "loc": (name,)} for name in arguments if name not in sent
        ]
        try:
            values = self._validate_values(sent)
        except ValidationError as error:
            wrong = error.errors(include_url=False)
            # repaired only now: a text that is valid as it is must not be read as JSON
            repaired = self._repair(sent, {f["loc"][0] for f in wrong if f["loc"]})
            try:
                values = self._validate_values(repaired)
            except ValidationError:
                faults += wrong  # of the arguments as the model wrote them, not as repaired
        if faults:
            raise ToolError(self._explain_faults(arguments, faults))
        return values

    def split(self, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Split validated arguments and the ToolContext into positional and keyword arguments."""
        keywords = dict(values)
        if self.has_keywords_only:
            return [], keywords
        args: list[Any] = []
        # over the whole signature: a parameter that is not in the schema has a position too
        for p in self._signature:
            if p.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(keywords.pop(p.name, ()))
            elif p.kind in _POSITIONAL:
                if p.name not in keywords and p.default is p.empty:
                    break  # the function then raises the TypeError that names the parameter
                args.append(keywords.pop(p.name, p.default))
        return args, keywords

    def _drop_inexpressible(self) -> None:
        """Drop parameters with a default whose type JSON cannot express.

        Raises UsageError for one without a default.
        """
        if self._is_expressible(self._parameters):
            return
        for p in list(self._parameters):
            if not self._is_expressible([p]):
                if p.default is p.empty:
                    kind = inspect.formatannotation(self._hints.get(p.name, Any))
                    raise UsageError(
                        f"Parameter {p.name!r} of tool {self.name!r} is a {kind}, which a model cannot write as JSON. "
                        "Give it a default, or wrap the function in one with plain parameters."
                    )
                self._parameters.remove(p)

    def _is_expressible(self, parameters: Sequence[inspect.Parameter]) -> bool:
        """Return whether the model of these parameters has a JSON schema."""
        try:
            self._build_model(parameters).model_json_schema()
        except Exception:  # pydantic raises many kinds, and annotations raise their own
            return False
        return True

    def _build_model(self, parameters: Sequence[inspect.Parameter]) -> Any:
        """Return a pydantic model with fields `p0`, `p1` …, whose aliases are the real names."""
        from pydantic import BaseModel, ConfigDict, create_model

        _load_plugins()
        kwargs = next((p for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD), None)
        config = ConfigDict(
            extra="allow" if kwargs else "forbid",
            arbitrary_types_allowed=True,
            coerce_numbers_to_str=True,
            protected_namespaces=(),
        )
        body: dict[str, Any] = {"__module__": __name__, "model_config": config}
        if kwargs:
            values: Any = convert_typed_dicts(self._hints.get(kwargs.name, Any))
            body["__annotations__"] = {"__pydantic_extra__": dict[str, values]}
        # `create_model` takes no annotation of `__pydantic_extra__`, the type of `**kwargs`: a base
        # made by pydantic's metaclass brings it
        metaclass: Any = type(BaseModel)
        fields: dict[str, Any] = {
            f"p{i}": self._make_field(p) for i, p in enumerate(parameters) if p is not kwargs
        }
        return create_model("Arguments", __base__=metaclass("Base", (BaseModel,), body), **fields)

    def _make_field(self, p: inspect.Parameter) -> tuple[Any, Any]:
        """Return type and pydantic field of a parameter."""
        from pydantic import Field

        hint = convert_typed_dicts(self._hints.get(p.name, Any))
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            return list[hint], Field([], alias=p.name, description=self._describe(p))  # type: ignore[valid-type]
        if p.default is p.empty:
            return hint, Field(..., alias=p.name, description=self._describe(p))
        # a factory: pydantic would copy the default, and fail to write one that is not JSON
        shown = {"default": p.default} if _is_json(p.default) else {}
        return hint, Field(
            default_factory=lambda: p.default,
            alias=p.name,
            description=self._describe(p),
            json_schema_extra=shown,
        )

    def _describe(self, p: inspect.Parameter) -> str | None:
        """Return the docstring's text for a parameter, unless its annotation has a description."""
        metadata = getattr(self._hints.get(p.name), "__metadata__", ())
        own = any(getattr(m, "description", None) for m in metadata)
        return None if own else self.doc.parameters.get(p.name)

    def _validate_values(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the validated arguments by name. Raises pydantic's ValidationError."""
        model = self._model.model_validate(arguments)
        fields = type(model).model_fields.items()
        # not `model_fields_set`: it also names what `**kwargs` took, which may be called `p0`
        values = {i.alias: getattr(model, field) for field, i in fields if i.alias in arguments}
        return {**values, **(model.model_extra or {})}

    def _repair(self, arguments: dict[str, Any], wrong: set[Any]) -> dict[str, Any]:
        """Return `arguments` with the `wrong` ones repaired.

        JSON texts are parsed, and nulls for parameters with a default are dropped.
        """
        optional = {p.name for p in self._parameters if p.default is not p.empty}
        mended = {
            k: _parse_json(v) if k in wrong and isinstance(v, str) else v
            for k, v in arguments.items()
        }
        return {k: v for k, v in mended.items() if not (k in wrong and v is None and k in optional)}

    def _explain_faults(self, arguments: dict[str, Any], faults: Sequence[Any]) -> str:
        lines = "\n".join(dict.fromkeys(f"- {explain_fault(arguments, f)}" for f in faults))
        return f"The arguments of {self.name!r} are not valid:\n{lines}\nParameters: {self._list_parameters()}."

    def _list_parameters(self) -> str:
        """Return the parameters with their types, for an error message."""
        required = set(self.schema.get("required", ()))
        shown = [
            f"{name} ({_describe_type(prop)}{'' if name in required else ', optional'})"
            for name, prop in self.schema["properties"].items()
        ]
        return ", ".join(shown) or "none"


def prepare_type(kind: Any) -> Any:
    """Return a type as pydantic takes it, once it has loaded its plug-ins. Raises UsageError."""
    _load_plugins()
    return convert_typed_dicts(kind)


@cache
def _load_plugins() -> None:
    """Have pydantic load its plug-ins, which it does once, with the first model.

    They are entry points of installed packages; a folder of the user's project is not searched.
    """
    from pydantic import create_model

    with without_project():
        create_model("First", field=(int, ...))


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return isinstance(value, str | int | float | bool | list | dict | None)


def remove_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Return `schema` without titles, those of inner schemas too (a property `title` stays)."""
    out = {k: v for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    for key in MAPS:
        if key in out:
            out[key] = {k: remove_titles(v) for k, v in out[key].items()}
    for key in LISTS:
        if key in out:
            out[key] = [remove_titles(v) for v in out[key]]
    for key in SINGLES:
        if isinstance(out.get(key), dict):
            out[key] = remove_titles(out[key])
    return out


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def explain_fault(arguments: dict[str, Any], fault: Any) -> str:
    """Return one line about a fault that pydantic found: the argument, what it expects and got."""
    path, value = _follow_path(arguments, fault["loc"])
    if fault["type"] == "missing":
        return f"{_write_path(fault['loc'])}: is missing"
    if fault["type"] == "extra_forbidden":
        return f"{path}: is not a parameter"
    expected = fault["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{path}: expected {expected}; got {_write_value(value)}"


def _follow_path(value: Any, loc: Sequence[Any]) -> tuple[str, Any]:
    """Follow pydantic's `loc` into the arguments; return the path and the value there.

    Steps that the arguments do not have, as pydantic adds for members of unions, are passed over.
    """
    reached = []
    for step in loc:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            continue
        reached.append(step)
    return _write_path(reached), value


def _write_path(steps: Iterable[Any]) -> str:
    """Return a path such as `points[0].x`."""
    return "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in steps).removeprefix(".")


def _write_value(value: Any) -> str:
    """Return the beginning of a JSON value and the name of its type."""
    text = cut_end(json.dumps(value, ensure_ascii=False, default=repr), _LONGEST_VALUE)
    names = {**PLAIN_NAMES, list: "array", dict: "object", type(None): "null"}
    return f"{text} ({names.get(type(value), type(value).__name__)})"


def _describe_type(prop: dict[str, Any]) -> str:
    if "enum" in prop or "const" in prop:
        return "one of " + ", ".join(
            json.dumps(v, ensure_ascii=False) for v in prop.get("enum", [prop.get("const")])
        )
    if "anyOf" in prop:
        return " or ".join(_describe_type(p) for p in prop["anyOf"])
    if "$ref" in prop:
        return str(prop["$ref"]).rsplit("/", 1)[-1]
    return str(prop.get("type", "any"))
