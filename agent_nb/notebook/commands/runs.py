"""The commands of this session's runs: `%agent show`, `attach`, `events`, `export` and `reset`."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import UsageError, unknown_name
from ...view import count_noun
from ..transform import await_or_run
from .output import print_text

if TYPE_CHECKING:
    from ...agent import Run
    from ..session import Session

FORMS = (".ndjson", ".jsonl", ".md", ".html", ".txt")


def show_run(session: Session, arguments: list[str]) -> Run | None:
    """[RUN]: show a run of this session again, live while it goes on"""
    from ...agent import REGISTRY, Run

    logs = REGISTRY.list_open_runs() if arguments else ()
    open_runs = {log.run: log for log in logs if log.run.startswith(arguments[0])}
    if not open_runs:
        return find_run(session, arguments)
    Run(open_runs[choose_id(arguments[0], open_runs, "run")]).show()
    return None


def attach_run(session: Session, arguments: list[str]) -> Any:
    """[URL] [-o VAR] [--token NAME] [--no-record]: follow a run of another process live (no URL: of
    your server on this machine)
    """
    from ..follow.attach import follow_run

    return await_or_run(follow_run(session, arguments))


def events_frame(session: Session, arguments: list[str]) -> Any:
    """[RUN]: the events of a run as a DataFrame"""
    return find_run(session, arguments).to_frame()


def export(session: Session, arguments: list[str]) -> None:
    """FILE [RUN]: write a run to a .ndjson, .jsonl, .md, .html or .txt file"""
    if not arguments:
        raise UsageError(f"Write %agent export FILE with one of the endings {', '.join(FORMS)}.")
    from ...agent import Run
    from ..files.export import export as write_runs

    path, run = Path(os.path.expanduser(arguments[0])), find_run(session, arguments[1:])
    if path.suffix.lower() not in FORMS:
        raise UsageError(f"{path.name} has an unknown ending. Known: {', '.join(FORMS)}.")
    # with the notebook's path, `html_page` finds what the cell displayed
    notebook = run.notebook or str(session.library.finder.path() or "")
    located = Run(run.log, cell=run.cell, notebook=notebook)
    form = path.suffix.lower().lstrip(".")
    try:
        path.write_text(write_runs([located], form), encoding="utf-8", newline="\n")
    except OSError as fault:
        raise UsageError(f"{path} cannot be written: {fault.strerror or fault}.") from None
    print_text(f"Run {run.id} is written to {path}.")


def reset_conversations(session: Session, arguments: list[str]) -> None:
    """[CONVERSATION]: forget the turns of one conversation, or of all"""
    names = [c.name for c in session.conversations]
    name = arguments[0] if arguments else None
    if name is not None and name not in names:
        raise UsageError(unknown_name("conversation", name, names))
    count = session.conversations.reset(name)
    print_text(f"{count_noun(count, 'turn')} forgotten. The runs stay in the notebook.")


def find_run(session: Session, arguments: list[str]) -> Run:
    """Return the run whose id begins with the argument, or the latest.

    Raises UsageError unless just one run has such an id.
    """
    if session.latest is None:
        raise UsageError("No run yet in this session.")
    if not arguments:
        return session.latest
    runs = [run for listed in session.runs.values() for run in listed]
    ids = list(dict.fromkeys(run.id for run in runs))
    none = f"No run of this session begins with {arguments[0]!r}. Known: {', '.join(ids)}."
    chosen = choose_id(arguments[0], ids, "run", none)
    return next(run for run in runs if run.id == chosen)


def choose_id(prefix: str, ids: Collection[str], noun: str, none: str = "") -> str:
    """Return the id that is `prefix`, else the only one that begins with it.

    Raises UsageError for several (each a `noun`), and with the message `none` without one.
    """
    matching = [prefix] if prefix in ids else [id_ for id_ in ids if id_.startswith(prefix)]
    if len(matching) > 1:
        raise UsageError(
            f"Several {noun}s begin with {prefix!r}: {', '.join(matching)}. Write more of the id."
        )
    if not matching:
        raise UsageError(none)
    return matching[0]
