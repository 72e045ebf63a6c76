"""Writes the output of the command line: to stdout, to stderr, and texts to files.

Records, notebooks and file names may come from strangers. A control sequence in them could move the
cursor and overwrite our verdict; a bidirectional mark could reverse a line.

Rules
- No other file of `cli` prints or touches stdout and stderr (`tests/test_architecture.py`).
- Hidden characters are escaped, except line ends and tabs; JSON text gets the escapes of JSON,
  so that its value stays the same. Only `write_unescaped`, for the git filter, escapes nothing.
- Complaints and tracebacks hold no known key.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from ..errors import UsageError
from ..wire import escape_hidden


def prepare_streams() -> None:
    """Make stdout and stderr escape characters that the locale lacks, and escape tracebacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.excepthook = _print_traceback


def print_lines(text: object = "", *, aside: bool = False) -> None:
    """Write a text and a line end to stdout; `aside`: to stderr."""
    _write(f"{text}\n", sys.stderr if aside else sys.stdout)


def print_complaint(text: str) -> None:
    """Write a line to stderr, with the name of the program."""
    print_lines(f"jupyter agent-nb: {_remove_keys(text)}", aside=True)


def _remove_keys(text: str) -> str:
    from ..models import collect_secrets
    from ..wire import redact_text

    return redact_text(text, collect_secrets())


def show_json(value: Any) -> None:
    """Print a JSON value in ASCII, which every locale has."""
    write_json(f"{json.dumps(value, indent=2)}\n")


def write_json(text: str) -> None:
    """Write JSON text, or server-sent events that hold it, to stdout."""
    sys.stdout.write(escape_hidden(text, "json"))


def stream_json(text: str) -> None:
    """Write JSON text to stdout at once. Raises BrokenPipeError if its reader has gone."""
    try:
        write_json(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes stdout at exit: the null device takes the rest without an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def read_and_write_utf_8() -> None:
    """Read stdin and write stdout in UTF-8 from now on, and change no line ends."""
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=stream.errors, newline="")


def write_unescaped(text: str) -> None:
    """Write JSON text to stdout as it is, unless stdout is a terminal."""
    if sys.stdout.isatty():
        write_json(text)
    else:
        sys.stdout.write(text)


def write_output(text: str, path: Path | None, *, as_json: bool = False) -> None:
    """Write a text to the file `path`, or to stdout if that is None; an empty text writes no file.

    Raises UsageError if the file cannot be written.
    """
    text = escape_hidden(text, "json" if as_json else "text")
    if path is None:
        sys.stdout.write(text)
    elif text:
        write_checked(lambda: path.write_text(text, encoding="utf-8", newline="\n"), path)


def write_checked(write: Callable[[], Any], path: Path) -> None:
    """Call `write`, which writes the file at `path`. Raises UsageError in place of OSError."""
    try:
        write()
    except OSError as fault:
        raise UsageError(f"{path} cannot be written: {fault.strerror or fault}.") from fault


def leave_quietly() -> None:
    """Close stderr, on which Python would report at exit that the reader of stdout has gone."""
    sys.stderr.close()


class JsonOutput(io.TextIOBase):
    """Standard output as a file for JSON text: closing it flushes stdout, which stays open."""

    def write(self, text: str) -> int:
        """Write JSON text."""
        write_json(text)
        return len(text)

    def flush(self) -> None:
        """Flush stdout."""
        sys.stdout.flush()


class Parser(argparse.ArgumentParser):
    """An argument parser whose help and errors are escaped like all output."""

    # argparse writes everything through this method
    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            _write(message, file or sys.stderr)


def _write(text: str, to: TextIO) -> None:
    to.write(escape_hidden(text))
    to.flush()


def _print_traceback(
    kind: type[BaseException], fault: BaseException, where: TracebackType | None
) -> None:
    _write(_remove_keys("".join(traceback.format_exception(kind, fault, where))), sys.stderr)
