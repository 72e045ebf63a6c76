"""The matcher that IPython asks for completions, added to a shell and removed.

Rules
- Every front end that asks the kernel gets the same names: JupyterLab, Notebook, a terminal.
- Where we know what belongs, Python's own completions stay away.
- A completion that fails offers nothing; it prints nothing into what is being typed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..session import Session

IDENTIFIER = "agent_nb"
PRIORITY = 100.0  # before Python's matchers, which then need not look


def matcher(session: Callable[[], Session]) -> Any:
    """Return a matcher for `IPCompleter.custom_matchers`."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    @context_matcher(identifier=IDENTIFIER, priority=PRIORITY)  # type: ignore[untyped-decorator]
    def agent_nb_matcher(context: Any) -> dict[str, Any]:
        from .fitting import Found, find_completions

        try:
            fitting = find_completions(
                session(), context.full_text, context.cursor_line, context.cursor_position
            )
        except Exception:  # a traceback in the middle of typing helps nobody
            fitting = Found()
        completions = [SimpleCompletion(name, type=fitting.kind) for name in fitting.names]
        return {
            "completions": completions,
            "matched_fragment": fitting.begun,
            "suppress": bool(completions),
            "ordered": True,
        }

    return agent_nb_matcher


def install_matcher(shell: Any, session: Callable[[], Session]) -> None:
    """Add the matcher to a shell; installing twice changes nothing."""
    matchers = _matchers(shell)
    if matchers is not None and not any(_ours(one) for one in matchers):
        matchers.append(matcher(session))


def uninstall_matcher(shell: Any) -> None:
    """Remove the matcher."""
    matchers = _matchers(shell)
    if matchers is not None:
        matchers[:] = [one for one in matchers if not _ours(one)]


def _matchers(shell: Any) -> list[Any] | None:
    matchers = getattr(getattr(shell, "Completer", None), "custom_matchers", None)
    return matchers if isinstance(matchers, list) else None


def _ours(one: Any) -> bool:
    return getattr(one, "matcher_identifier", "") == IDENTIFIER
