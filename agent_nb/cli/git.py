"""The commands for git: `git-setup`, and the drivers for diff and merge that git then calls.

Why drivers: git's own diffs of a notebook's JSON are unreadable, and its merges break records.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import UsageError
from .shared import FAILED, OK, Arguments, add_flag, existing_files
from .terminal import print_complaint, print_lines, read_and_write_utf_8, write_output


def git_setup(arguments: Arguments) -> int:
    """let git show and merge notebooks with records in this repository (if it uses nbstripout: with
    --keep-id)
    """
    from ..notebook import install_drivers

    print_lines("\n".join(install_drivers(Path(arguments.folder), filtered=arguments.strip)))
    return OK


def git_setup_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-setup`."""
    sub.add_argument(
        "folder",
        nargs="?",
        default=".",
        metavar="FOLDER",
        help="a folder of the repository (default: this one)",
    )
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
    return OK if merge_files(*paths, report=print_complaint) else FAILED


def git_merge_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `git-merge`."""
    for name, which in (
        ("base", "the common ancestor"),
        ("ours", "our version, written over"),
        ("theirs", "the other version"),
    ):
        sub.add_argument(name, metavar=name.upper(), help=which)
