"""The commands `pack` and `strip`: records move into a notebook's metadata, or are removed."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from ..errors import UsageError
from .shared import OK, Arguments, existing_files, file_options
from .terminal import print_lines, read_and_write_utf_8, write_checked, write_unescaped


def pack_records(arguments: Arguments) -> int:
    """move the records of notebooks from their outputs into their metadata"""
    from ..record import NotebookRuns, load_notebook, save_notebook

    for path in existing_files(arguments.notebooks):
        nb = load_notebook(path)
        if notice := NotebookRuns(nb).newer_format_notice:
            raise UsageError(f"{path}: {notice}")
        before = json.dumps(nb)
        # `lift` may also return True if it changes nothing
        if NotebookRuns(nb).lift() and json.dumps(nb) != before:
            write_checked(partial(save_notebook, nb, path), path)
            print_lines(f"{path}: packed")
        else:
            print_lines(f"{path}: nothing to do")
    return OK


def strip_records(arguments: Arguments) -> int:
    """remove the records from notebooks; with no file: from stdin to stdout, as a git filter"""
    from ..record import NotebookRuns, load_notebook, save_notebook

    if not arguments.notebooks:
        return _strip_filter()
    for path in existing_files(arguments.notebooks):
        nb = load_notebook(path)
        count = NotebookRuns(nb).strip()
        if count:
            write_checked(partial(save_notebook, nb, path), path)
        noun = "record" if count == 1 else "records"
        print_lines(f"{path}: {count or 'no'} {noun} or references removed")
    return OK


def strip_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `strip`."""
    file_options(sub, "notebook files (default: stdin)", "*")


def _strip_filter() -> int:
    """Copy a notebook from stdin to stdout without its records; unchanged if it has none."""
    from ..record import NotebookRuns

    read_and_write_utf_8()
    try:
        text = sys.stdin.read()
        nb = json.loads(text.removeprefix("\ufeff"))  # the mark before UTF-8 on Windows
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"stdin is not a notebook: {fault}") from fault
    if not isinstance(nb, dict) or not NotebookRuns(nb).strip():
        write_unescaped(text)
        return OK
    write_unescaped(json.dumps(nb, ensure_ascii=False, indent=1) + "\n")
    return OK
