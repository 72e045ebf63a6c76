"""Built-in tool `variables`: list the user's variables, or describe one of them.

Why: without it a model has to run code to learn this. That needs an approval, and the code may
compute a lazy frame, run methods of the objects, or print so much that it fills the context window.

Outside a notebook it reads what the run's own `python` calls have set, else `__main__`. A replay
calls it again, to show that data have changed.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Awaitable
from functools import partial
from typing import Annotated, Any

from annotated_types import Ge, Le

from ..errors import ToolError, did_you_mean
from ..models import collect_secrets
from ..wire import redact_text
from .base import ToolContext
from .decorator import as_tool, tool
from .describe import describe_variable, list_variables, preview_value, user_variables
from .safe_types import module_space, own_fields

_PYTHON = "python"  # key in `ToolContext.state` of the namespace of the tool `python`
_NO_VARIABLES = "There are no variables."


@tool(effect="reads", icon="variables")
def variables(
    name: str = "", rows: Annotated[int, Ge(1), Le(20)] = 3, *, context: ToolContext
) -> str | Awaitable[str]:
    """List the user's variables with their types and sizes, or describe one and show its first rows
    or items. Runs no code.

    Args:
        name: The name of one variable; empty for the list.
        rows: How many rows or items of it to show.
    """
    if context.host is None:
        return _describe(_namespace_of(context), name, rows)
    host = context.host
    # the loop awaits it as it awaits a cell of `python`: calls of one batch reach the host in order
    return host.call(lambda: _describe(host.namespace(), name, rows))


tools = (as_tool(variables),)


def _namespace_of(context: ToolContext) -> dict[str, Any]:
    """Return the namespace that a call reads outside a notebook. Raises ToolError without one."""
    namespace = context.state.get(_PYTHON)
    space = namespace if type(namespace) is dict else own_fields(sys.modules.get("__main__"))
    if type(space) is not dict:
        raise ToolError("There are no variables here: no notebook, and no main program.")
    return space


def _describe(namespace: dict[str, Any], name: str, rows: int) -> str:
    """Return the list of variables, or one of them with `rows` rows. Raises ToolError."""
    clean = partial(redact_text, secrets=collect_secrets())
    hidden = _shell_variables(namespace)
    if not name:
        return list_variables(user_variables(namespace, hidden), clean=clean) or _NO_VARIABLES
    known = user_variables(namespace, hidden, modules=True)
    if not name.isidentifier():
        raise ToolError("Give the name of one variable, not an expression.")
    if name not in known:
        raise ToolError(f"The user has no variable named {name!r}.{did_you_mean(name, known, 3)}")
    preview = preview_value(known[name], rows, clean)
    text = describe_variable(name, known[name], clean).as_text()
    return f"{text}\n{preview}" if preview else text


def _shell_variables(namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the variables that IPython has set, {} if `namespace` is not the shell's."""
    # looked up in the loaded module: without IPython nothing is imported
    get_shell = module_space("IPython.core.getipython").get("get_ipython")
    shell = get_shell() if type(get_shell) is types.FunctionType else None
    if shell is None or shell.user_ns is not namespace:
        return {}
    hidden: dict[str, Any] = shell.user_ns_hidden
    return hidden
