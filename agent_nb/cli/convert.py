"""The command `convert`: translates a run from one format into another (`codecs.convert_files`).

Rule: input and output are never one file, not even by a link or a redirection, since the output
empties it.
"""

from __future__ import annotations

import argparse
import os
from contextlib import suppress
from stat import S_ISREG

from ..errors import UsageError
from .shared import OK, Arguments, add_flag, add_text
from .terminal import JsonOutput, print_complaint


def convert_run(arguments: Arguments) -> int:
    """translate a run from one format into another, as it comes; losses are reported on stderr"""
    from ..codecs import convert_files

    source, target = arguments.source, arguments.output
    with suppress(OSError, ValueError):  # the output does not exist yet, or an end is closed
        read, written = (os.stat(n if n != "-" else fd) for fd, n in enumerate((source, target)))
        if os.path.samestat(read, written) and S_ISREG(read.st_mode):  # a terminal is both, too
            raise UsageError(
                f"{target if source == '-' else source} would be written over while it is read. Choose another file with -o."
            )
    report = convert_files(
        source,
        target,
        arguments.from_ or None,
        arguments.to,
        strict=arguments.strict,
        framing=arguments.framing,
        output=JsonOutput(),
    )
    print_complaint(str(report))
    return OK


def convert_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `convert`."""
    source_help = "the file to read (default: stdin)"
    sub.add_argument("source", nargs="?", default="-", metavar="IN", help=source_help)
    from_help = "the format of IN (default: recognised by its first lines)"
    sub.add_argument("--from", dest="from_", default="", metavar="CODEC", help=from_help)
    to_help = "the format to write, or one of its forms, as loom:export"
    sub.add_argument("--to", required=True, metavar="CODEC", help=to_help)
    add_text(sub, "-o --output", "OUT", "the file to write (default: stdout)", "-")
    framing_help = "how objects are parted (default: as the format does)"
    sub.add_argument("--framing", choices=("ndjson", "sse"), help=framing_help)
    add_flag(sub, "--strict", "stop at the first thing that cannot be carried")
