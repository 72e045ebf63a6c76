"""Update the static forms of runs (HTML, text) in a notebook that is saved before they end.

Why: the static form beside a live view is made when the run begins. The saved notebook must show
the present state of the run: it goes on, it waits for an approval, or its kernel is gone. The
journal of the run says which; without one (another machine) a form stays.

Rule: only the run's id, and whether it is a saved page, is read from an output, which may be
forged.
"""

from __future__ import annotations

from contextlib import suppress

from ..record import Journal, Notebook, RecoverableRun, RunNumbers, list_cells, list_outputs

MOST_BYTES = 16 << 20  # of a larger journal only the status is read


def goes_on(run: str) -> bool:
    """Return whether a process of this machine writes the journal of a run."""
    path = Journal.find(run)
    return path is not None and Journal.is_being_written(path)


def update_forms(nb: Notebook) -> int:
    """Update the static forms of runs that had not ended; return how many changed."""
    count = 0
    for output in (output for cell in list_cells(nb) for output in list_outputs(cell)):
        run, data = RunNumbers.of(output).get(RunNumbers.LIVE), output.get("data")
        if not isinstance(run, str) or not isinstance(data, dict) or "text/html" not in data:
            continue
        with suppress(Exception):
            forms = _make_forms(run, str(data["text/html"]))
            count += any(data.get(kind) != form for kind, form in forms.items())
            data.update(forms)
    return count


def _make_forms(run: str, before: str) -> dict[str, str]:
    """Return the static forms of a run by MIME type, {} if the HTML `before` stays."""
    from ..view import Recovery

    path = Journal.find(run)
    if path is None:
        # a saved page that says "the run goes on" may be wrong by now; other forms stay
        return Recovery(run).saved_forms((), "unknown") if Recovery.SAVED in before else {}
    summary = RecoverableRun.summarize(path)
    if summary is None:  # a journal without an event
        is_written = Journal.is_being_written(path)
        return Recovery(run).saved_forms((), "going on" if is_written else "gone")
    recovery = Recovery(run, journal=True)
    events = RecoverableRun.read_events(path) if summary.size <= MOST_BYTES else ()
    if summary.status == "running":
        return recovery.saved_forms(events, "going on")
    return recovery.saved_forms(events, "gone" if summary.status == "lost" else "ended")
