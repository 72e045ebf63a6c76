"""The commands that read recorded runs: `events`, `export`, `diff` and `verify`.

Rule: these commands change no notebook, and send no request to a model.
"""

from __future__ import annotations

import argparse

from ..errors import UsageError
from ..wire import escape_hidden
from .shared import (
    FAILED,
    OK,
    SEVERAL,
    Arguments,
    add_flag,
    add_text,
    existing_files,
    file_options,
    list_notebooks,
    output_option,
    output_path,
)
from .terminal import print_complaint, print_lines, show_json, write_output

# the columns of `events` in a terminal, few enough for its width
TABLE = "turn,type,name,text,seconds,status,duration_s,fraction,tokens_in,tokens_out,seq,span"
# the default format of a table, by the suffix of its file
FORMS = {".csv": "csv", ".json": "json", ".parquet": "parquet", ".pq": "parquet", ".xlsx": "xlsx"}


def print_events(arguments: Arguments) -> int:
    """print the events of the newest run of each cell, as a table, CSV, JSON, Parquet or, in
    a file .xlsx, a spreadsheet
    """
    from ..notebook import read_runs
    from ..rows import Runs
    from . import tables

    paths = list_notebooks(arguments.notebooks)
    output = output_path(arguments.output, paths)
    runs = read_runs(paths, every=arguments.all, row_calls=True)
    if arguments.json:
        write_output("".join(run.log.to_ndjson() for run in runs), output, as_json=True)
        return OK
    suffix = output.suffix.lower() if output else ""
    form = arguments.format or FORMS.get(suffix, "table")
    if output is None and form == "table" and not arguments.columns:
        for run in runs:
            print_lines(escape_hidden(f"cell {run.cell}, run {run.id}", "line"))
            print_lines(tables.text_table(tables.runs_frame(Runs([run]), TABLE)))
        return OK
    text = tables.write_frame(tables.runs_frame(runs, arguments.columns), form, output)
    write_output(text, output, as_json=form == "json")
    return OK


def events_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `events`."""
    file_options(sub, SEVERAL)
    add_flag(sub, "--all", "every recorded run, not only the newest of each cell")
    columns_help = "events, calls, turns, runs, all, 'all calls' … or names with commas"
    add_text(sub, "--columns", "COLUMNS", columns_help)
    format_help = "how to write (default: by the ending of -o)"
    sub.add_argument("--format", choices=("table", "csv", "json", "parquet"), help=format_help)
    output_option(sub)
    add_flag(sub, "--json", "the events as they are, one JSON object a line")


def export_notebooks(arguments: Arguments) -> int:
    """write runs as markdown, HTML, text, or in the format of a codec (canonical, loom, ag-ui …)"""
    from ..codecs import Losses
    from ..notebook import export, is_page, read_runs

    paths, run_id = list_notebooks(arguments.notebooks), arguments.run
    output = output_path(arguments.output, paths)
    runs = read_runs(paths, every=bool(run_id), id_=run_id, row_calls=True)
    if not runs:
        which = f" whose id begins with {run_id!r}" if run_id else ""
        raise UsageError(f"No recorded run to export{which}.")
    form = arguments.to or (output.suffix.lstrip(".").lower() if output else "markdown")
    losses = Losses()
    write_output(export(runs, form, losses), output, as_json=not is_page(form))
    if losses:
        print_complaint(f"not written as {form}:\n{losses}")
    return OK


def export_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `export`."""
    file_options(sub, SEVERAL)
    add_text(sub, "--run", "ID", "one run, by the beginning of its id")
    form_help = "markdown, html, text or a codec (default: by the ending of -o)"
    add_text(sub, "--to", "FORM", form_help)
    output_option(sub)


def diff_notebooks(arguments: Arguments) -> int:
    """compare the newest runs of two notebooks cell by cell; with one notebook, each cell's newest
    run with the one before
    """
    from ..notebook import compare_notebooks

    comparisons = compare_notebooks(existing_files(arguments.notebooks))
    for comparison in comparisons:
        print_lines(comparison)
    return FAILED if any(comparisons) else OK


def diff_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `diff`."""
    file_options(sub, "one or two notebooks, or files of events")


def verify_notebooks(arguments: Arguments) -> int:
    """check the records of notebooks: shape, hashes, payloads, secrets, signatures"""
    from ..notebook import verify

    problems: list[str] = []
    remarks: list[str] = []
    paths = list_notebooks(arguments.notebooks)
    for path in paths:
        try:
            path_problems, path_remarks = verify(path, signed=arguments.signed)
        except UsageError as fault:  # of several, the others are checked all the same
            if len(paths) == 1:
                raise
            path_problems, path_remarks = [str(fault)], []
        problems += path_problems
        remarks += path_remarks
    if arguments.json:
        show_json({"ok": not problems, "problems": problems, "remarks": remarks})
    else:
        print_lines("\n".join([*problems, *remarks]) or "no records")
    return FAILED if problems else OK


def verify_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `verify`."""
    file_options(sub, SEVERAL)
    add_flag(sub, "--signed", "a record that you have not signed is a problem")
    add_flag(sub, "--json", "print the results as JSON")
