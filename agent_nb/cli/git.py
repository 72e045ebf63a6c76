"""The commands for git: `git-setup`, and the drivers for diff and merge that git then calls.

git's own diffs of a notebook's JSON are unreadable, and its merges break records.
The docstring of a command is its help.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import UsageError
from .shared import FAILED, OK, Arguments, add_flag, existing_files
from .terminal import (
    print_complaint,
    print_lines,
    read_and_write_utf_8,
    write_checked,
    write_output,
)


def git_setup(arguments: Arguments) -> int:
    """let git show and merge notebooks with records in this repository (if it uses nbstripout: with
    --keep-id)
    """
    from ..notebook import install_drivers

    print_lines("\n".join(install_drivers(Path(arguments.folder), filtered=arguments.strip)))
    return OK


def git_setup_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-setup`."""
    folder_help = "a folder of the repository (default: this one)"
    sub.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help=folder_help)
    add_flag(sub, "--strip", "also keep records out of what is committed")


def git_text(arguments: Arguments) -> int:
    """print a notebook as git's diff shows it (what git-setup installs)"""
    from ..notebook import diff_text
    from ..record import load_notebook

    read_and_write_utf_8()  # git takes the text for UTF-8 in every locale
    (path,) = existing_files([arguments.notebook])
    try:
        text = diff_text(load_notebook(path))
    except UsageError as fault:  # failing on one bad version would end the whole `git log`
        print_complaint(str(fault))
        text = path.read_text(encoding="utf-8", errors="replace")
    write_output(text, None)
    return OK


def git_text_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-text`."""
    sub.add_argument("notebook", metavar="NOTEBOOK", help="a notebook file")


def git_merge(arguments: Arguments) -> int:
    """merge three versions of a notebook into the second (what git-setup installs)"""
    from ..notebook import merge_files

    paths = (Path(arguments.base), Path(arguments.ours), Path(arguments.theirs))
    clean = False

    def merge() -> None:
        nonlocal clean
        clean = merge_files(*paths, report=print_complaint)

    write_checked(merge, paths[1])
    return OK if clean else FAILED


def git_merge_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-merge`."""
    sub.add_argument("base", metavar="BASE", help="the common ancestor")
    sub.add_argument("ours", metavar="OURS", help="our version, written over")
    sub.add_argument("theirs", metavar="THEIRS", help="the other version")
