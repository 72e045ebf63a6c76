"""The matcher that IPython calls for completions: made, added to a shell and removed.

Why apart from `fitting`: only this file knows the matchers of IPython's versions. IPython before
8.6 (Colab has 7.34) gives no context: the cell is read from the kernel's request, and a terminal,
which sends none, completes the first line only.

Rule: a completion that fails offers nothing, and prints nothing into the line that the user types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..identity import completed_code

if TYPE_CHECKING:
    from ..session import Session
    from .fitting import Completions

IDENTIFIER = "agent_nb"
PRIORITY = 100.0  # above Python's matchers, whose results are suppressed then


def make_matcher(shell: Any, session: Callable[[], Session]) -> Any:
    """Return a matcher for `IPCompleter.custom_matchers` of a shell."""
    try:
        from IPython.core.completer import SimpleCompletion, context_matcher
    except ImportError:
        return _plain_matcher(shell, session)

    @context_matcher(identifier=IDENTIFIER, priority=PRIORITY)  # type: ignore[untyped-decorator]
    def agent_nb_matcher(context: Any) -> dict[str, Any]:
        offered = _find_names(
            session, context.full_text, context.cursor_line, context.cursor_position
        )
        completions = [
            SimpleCompletion(name, type=offered.kinds.get(name, offered.kind))
            for name in offered.names
        ]
        return {
            "completions": completions,
            "matched_fragment": offered.prefix,
            "suppress": bool(completions),
            "ordered": True,
        }

    return agent_nb_matcher


def _plain_matcher(shell: Any, session: Callable[[], Session]) -> Any:
    """Return a matcher for versions of IPython that pass a matcher only the last word.

    The line before the cursor is read from the completer.
    """

    def agent_nb_matcher(text: str) -> list[str]:
        line = shell.Completer.text_until_cursor
        above = _lines_above(shell, line)
        offered = _find_names(session, "\n".join([*above, line]), len(above), len(line))
        # IPython's word may begin later than the name, at a character such as `/` or `:` in it
        extra = len(offered.prefix) - len(text)
        return [name[extra:] for name in offered.names] if extra >= 0 else []

    agent_nb_matcher.matcher_identifier = IDENTIFIER  # type: ignore[attr-defined]
    return agent_nb_matcher


def _lines_above(shell: Any, line: str) -> list[str]:
    """Return the lines of the cell above the one that is completed, [] if they are unknown."""
    code, cursor = completed_code(shell)
    *above, last = code[:cursor].split("\n")
    return above if last == line else []


def _find_names(session: Callable[[], Session], code: str, line: int, column: int) -> Completions:
    """Return the completions at a line and column, nothing if that fails."""
    from .fitting import Completions, find_completions

    try:
        return find_completions(session(), code, line, column)
    except Exception:  # a traceback in the middle of typing only disturbs
        return Completions()


def install_matcher(shell: Any, session: Callable[[], Session]) -> None:
    """Add the matcher to a shell; installing twice changes nothing."""
    matchers = _list_matchers(shell)
    if matchers is not None and not any(map(_is_ours, matchers)):
        matchers.append(make_matcher(shell, session))


def uninstall_matcher(shell: Any) -> None:
    """Remove the matcher."""
    matchers = _list_matchers(shell)
    if matchers is not None:
        matchers[:] = [matcher for matcher in matchers if not _is_ours(matcher)]


def _list_matchers(shell: Any) -> list[Any] | None:
    matchers = getattr(getattr(shell, "Completer", None), "custom_matchers", None)
    return matchers if isinstance(matchers, list) else None


def _is_ours(matcher: Any) -> bool:
    return getattr(matcher, "matcher_identifier", "") == IDENTIFIER
