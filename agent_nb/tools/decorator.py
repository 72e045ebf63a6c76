"""Make tools of functions: `@tool`, and `as_tool` for undeclared functions.

    @tool(effect="outside")
    def send(text: str, context: ToolContext) -> str:
        '''Send a message.'''

Why: a tool is written, tested and called as a plain function; the decorator only adds `.tool`.

Rule: an undeclared function counts as one without effects: a user who names it as a tool thereby
allows its calls.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import unicodedata
from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

import msgspec

from ..errors import UsageError
from ..host import mark_foreign
from ..models import ToolSpec
from .base import Compare, Effect, Tool, ToolContext
from .safe_types import find_entry, is_a, own_fields

F = TypeVar("F", bound=Callable[..., Any])
Thread = Literal["worker", "main"]
Render = Callable[[Any], dict[str, Any]]
Preview = Callable[[dict[str, Any], ToolContext], str]
_DECLARED = "__agent_nb__"  # the attribute of a function that holds its declaration
_LONGEST_NAME = 64  # characters: providers refuse longer names of tools
#: reads `func` of a partial even if a subclass hides it
_PARTIAL: Any = functools.partial.__dict__["func"]


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of `@tool`; an empty name or description stands for the function's own."""

    name: str = ""
    description: str = ""
    effect: Effect | None = None
    timeout: float | None = None
    thread: Thread = "worker"
    render: Render | None = None
    preview: Preview | None = None
    icon: str = ""
    compare: Compare = "full"


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str = "",
    description: str = "",
    effect: Effect | None = None,
    side_effects: bool = False,
    timeout: float | None = None,
    thread: Thread = "worker",
    render: Render | None = None,
    preview: Preview | None = None,
    icon: str = "",
    compare: Compare = "full",
) -> Callable[[F], F]: ...
def tool(function: Any = None, /, *, side_effects: bool = False, **options: Any) -> Any:
    """Declare a function as a tool; use it bare or with options.

    `name` and `description` default to the function's own. `effect`: none, reads, kernel or outside
    (`side_effects=True` means outside); undeclared it is none, except that a replay runs functions
    that use notebook variables again. `timeout`: seconds (None: the runner's default, `math.inf`:
    no limit). `thread`: worker or main, for synchronous functions. `render(value)` returns a mime
    bundle for people; `preview(args, context)` returns a text of what a call would change.
    `compare`: what must equal the record when `test` runs a call again: the whole result (full),
    durations too (exact), its text, or nothing (none).

    Raises UsageError for invalid options or signatures.
    """
    if side_effects:
        options["effect"] = "outside"
    declaration = _check_options(options)
    if function is not None:
        return _declare(function, declaration)
    return lambda f: _declare(f, declaration)


def as_tool(function: Any, name: str = "") -> Tool:
    """Return a Tool made of a Tool, a function, method, partial or callable object.

    An object with a method `as_tool` makes its tool itself. `name` applies if none is declared.
    Raises UsageError for other values.
    """
    if isinstance(function, Tool):
        return function
    if not inspect.isroutine(function) and callable(getattr(type(function), "as_tool", None)):
        own: Tool = function.as_tool()
        return own
    existing = getattr(function, "tool", None) if inspect.isroutine(function) else None
    if (
        isinstance(existing, Tool)
        and inspect.unwrap(existing.invoke, stop=lambda f: f is function) is function
    ):
        # the check above: `functools.wraps` copies the `.tool` of the wrapped function, and a bound
        # method shows the `.tool` of its plain function; both would call another function than this
        return existing
    return _make_tool(function, _read_declaration(function) or Declaration(), name)


def clean_name(text: str) -> str:
    """Return `text` as a name that every provider accepts: 64 letters, digits, `_`, `-` at most."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-zA-Z0-9_-]+", "_", ascii_text)[:_LONGEST_NAME].strip("_") or "tool"


def is_tool(value: Any) -> bool:
    """Return True for a Tool and for a function declared with `@tool`."""
    return is_a(value, Tool) or _read_declaration(value) is not None


def _read_declaration(value: Any) -> Declaration | None:
    """Return the declaration of `@tool` on a value, or None.

    It is read from `__dict__` alone: `is_tool` looks at every object of the namespace, and an
    object may fake any attribute.
    """
    value = _unwrap_partials(value)
    fields = own_fields(value.__func__ if is_a(value, types.MethodType) else value)
    declared = find_entry(fields, _DECLARED) if fields is not None else None
    return declared if is_a(declared, Declaration) else None


def _declare(function: Any, declaration: Declaration) -> Any:
    """Mark a function as a tool and return it. Raises UsageError."""
    if isinstance(function, classmethod | staticmethod):
        raise UsageError(f"Write @tool below @{type(function).__name__}, next to the function.")
    own_tool = None if _is_in_class(function) else _make_tool(function, declaration, "")
    try:
        setattr(function, _DECLARED, declaration)
        if own_tool is not None:  # a method becomes a tool once it is bound
            function.tool = own_tool
    except AttributeError:
        raise UsageError(
            f"@tool cannot mark {_describe_value(function)}. Wrap it in a function of your own."
        ) from None
    return function


def _make_tool(function: Any, declaration: Declaration, name: str) -> Tool:
    """Return the tool of a function; `name` applies if the declaration has none."""
    from .schema import Arguments

    if not callable(function) or inspect.isclass(function):
        raise UsageError(
            f"Cannot make a tool of {_describe_value(function)}. Give a function, or a name of one."
        )
    own = _unwrap_partials(function)
    title = clean_name(
        declaration.name or name or getattr(own, "__name__", "") or type(own).__name__
    )
    arguments = Arguments(function, title)
    description = declaration.description or arguments.doc.description
    return Tool(
        spec=ToolSpec(title, description, arguments.schema),
        invoke=_make_invoker(function, arguments),
        validate=arguments.validate,
        context_parameter=arguments.context_parameter,
        effect=declaration.effect or "none",
        declared=declaration.effect is not None,
        timeout=declaration.timeout,
        thread=_choose_thread(function, declaration.thread, title),
        render=declaration.render,
        preview=declaration.preview,
        icon=declaration.icon,
        compare=declaration.compare,
    )


def _make_invoker(function: Callable[..., Any], arguments: Any) -> Callable[..., Any]:
    """Return a callable that takes every argument by keyword: `function` itself if possible."""
    if arguments.has_keywords_only:
        return function

    @functools.wraps(function)
    @mark_foreign
    def call(**values: Any) -> Any:
        args, keywords = arguments.split(values)
        return function(*args, **keywords)

    return call


def _choose_thread(function: Any, wanted: Thread, name: str) -> Literal["worker", "main", "loop"]:
    """Return where calls of a function run. Raises UsageError for an async one in `main`."""
    if not is_async(function):
        return wanted
    if wanted == "main":
        raise UsageError(
            f"Tool {name!r} is async and runs on the agent's event loop; thread='main' is for plain functions."
        )
    return "loop"


def is_async(function: Any) -> bool:
    """Return whether a callable of any form is a coroutine or async generator function."""
    function = _unwrap_partials(function)
    candidates = [function]
    if not inspect.isroutine(function):
        candidates.append(getattr(type(function), "__call__", function))  # noqa: B004
    return any(inspect.iscoroutinefunction(f) or inspect.isasyncgenfunction(f) for f in candidates)


def _is_in_class(function: Any) -> bool:
    """Return True for a method in a class body, not yet bound to an object."""
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    try:
        first = next(iter(inspect.signature(function).parameters), "")
    except (TypeError, ValueError):  # no signature: `_make_tool` says so
        return False
    return bool(owner) and not owner.endswith("<locals>") and first in ("self", "cls")


def _unwrap_partials(function: Any) -> Any:
    """Return the function inside partials."""
    while is_a(function, functools.partial):
        function = _PARTIAL.__get__(function)
    return function


def _describe_value(value: Any) -> str:
    return f"the class {value.__name__}" if inspect.isclass(value) else f"a {type(value).__name__}"


def _check_options(options: dict[str, Any]) -> Declaration:
    """Return the options of `@tool` as a declaration. Raises UsageError."""
    try:
        return msgspec.convert(options, Declaration, strict=True)
    except msgspec.ValidationError as error:
        raise UsageError(f"@tool: {error}.") from None
