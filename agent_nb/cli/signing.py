"""The commands for signatures: `sign` signs records; `trust` lists, adds and removes signers.

A signature lets calls run again, on every machine that trusts the signer. So `sign` shows these
calls, and signs only after a yes (or `--yes`).
"""

from __future__ import annotations

import argparse
import os
import sys
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MissingExtra, UsageError
from ..wire import escape_hidden
from .shared import FAILED, OK, Arguments, add_flag, add_text, existing_files, file_options
from .terminal import print_complaint, print_lines, write_checked

if TYPE_CHECKING:
    from ..record import PrivateKey

_DEFAULT_KEY = "~/.ssh/id_ed25519"  # the default of --key
_NO_TERMINAL = (
    "There is nobody to ask: run sign in a terminal, or say --yes when you have read the calls."
)


def sign_notebooks(arguments: Arguments) -> int:
    """sign the records of notebooks with your Ed25519 key, after you have read the calls that may
    run again where you are trusted
    """
    paths = existing_files(arguments.notebooks)
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if not (terminal or arguments.yes):
        raise UsageError(_NO_TERMINAL)
    key = _load_key(Path(os.path.expanduser(arguments.key)), terminal=terminal)
    are_signed = [_sign_notebook(path, key, ask=not arguments.yes) for path in paths]
    return OK if all(are_signed) else FAILED


def sign_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `sign`."""
    file_options(sub)
    key_help = f"an OpenSSH private key of the kind Ed25519 (default: {_DEFAULT_KEY})"
    add_text(sub, "--key", "FILE", key_help, _DEFAULT_KEY)
    add_flag(sub, "--yes", "do not ask: you have read the calls")


def manage_signers(arguments: Arguments) -> int:
    """list, add or remove the people whose signed records `test` trusts as yours; their list stands
    in your configuration folder
    """
    print_lines(arguments.run_subcommand(arguments))
    return OK


def trust_options(sub: argparse.ArgumentParser) -> None:
    """Add the subcommands of `trust`."""
    subcommands = sub.add_subparsers(required=True, metavar="list|add|remove", help="what to do")
    listing = subcommands.add_parser("list", help="list the signers")
    listing.set_defaults(run_subcommand=_list_signers)
    adding = subcommands.add_parser("add", help="add a signer")
    adding.add_argument("name", metavar="NAME", help="a name for the signer")
    key_help = "a public key file, its line, or a line of an allowed_signers file"
    adding.add_argument("key", nargs="+", metavar="KEY", help=key_help)
    adding.set_defaults(run_subcommand=_add_signer)
    removing_help = "remove a signer: nothing they signed is trusted any more"
    removing = subcommands.add_parser("remove", help=removing_help)
    removing.add_argument("name", metavar="NAME", help="the signer's name or fingerprint")
    removing.set_defaults(run_subcommand=_remove_signer)


def _sign_notebook(path: Path, key: PrivateKey, *, ask: bool) -> bool:
    """Show the records of a notebook and sign them; return False if one is left unsigned."""
    from ..notebook import review_records
    from ..record import METADATA_KEY, NotebookRuns, load_notebook, save_notebook

    nb = load_notebook(path)
    runs = NotebookRuns(nb)
    if notice := runs.newer_format_notice:
        raise UsageError(f"{path}: {notice}")
    runs.lift()  # all records are in the metadata then
    review = review_records(nb)
    print_lines("\n".join([f"{path}:", *([review.render()] if review else [])]))
    signable = review.signable
    if not signable:
        print_lines(f"{path}: no record to sign")
        return not review  # True if there is nothing to sign
    calls = sum(len(entry.calls) for entry in signable)
    clipped = sum(entry.clipped for entry in signable)
    if ask and not _confirm_signing(len(signable), calls, clipped):
        print_complaint(f"{path}: not signed")
        return False
    metadata = nb["metadata"]
    count = review.sign(metadata[METADATA_KEY], key)
    metadata[METADATA_KEY] = dict(sorted(metadata[METADATA_KEY].items()))  # as Jupyter writes it
    write_checked(lambda: save_notebook(nb, path), path)
    print_lines(f"{path}: {count} record{'' if count == 1 else 's'} signed with {key.fingerprint}")
    return len(signable) == len(review)


def _list_signers(_: Arguments) -> str:
    from ..record import Signer

    nobody = "no signers: test trusts what you have recorded yourself (jupyter agent-nb trust add NAME KEY)"
    return "\n".join(map(str, Signer.load_all())) or nobody


def _add_signer(arguments: Arguments) -> str:
    from ..record import Signer

    return f"added: {Signer.add(arguments.name, ' '.join(arguments.key))}"


def _remove_signer(arguments: Arguments) -> str:
    from ..record import Signer

    return "\n".join(f"removed: {signer}" for signer in Signer.remove(arguments.name))


def _load_key(file: Path, *, terminal: bool) -> PrivateKey:
    """Return the private key in a file; `terminal`: the user can be asked for its passphrase.

    Raises UsageError if the key cannot be read or used, MissingExtra if a library is missing.
    """
    from ..record import PrivateKey

    def passphrase() -> str:
        if not terminal:
            raise UsageError("it is encrypted, and there is nobody to ask for the passphrase")
        return getpass(escape_hidden(f"Passphrase of {file}: "))

    try:
        return PrivateKey.of(file.read_bytes(), passphrase)
    except OSError as fault:
        problem = f"The key {file} cannot be read ({fault.strerror or fault})."
        advice = "Name one with --key FILE, or make one with: ssh-keygen -t ed25519"
        raise UsageError(f"{problem} {advice}") from None
    except MissingExtra:  # a UsageError too, but its text is the whole advice
        raise
    except UsageError as fault:
        raise UsageError(f"The key {file} does not sign: {fault}.") from None


def _confirm_signing(runs: int, calls: int, clipped: int) -> bool:
    """Ask whether to sign; return the answer. `clipped`: how many arguments were cut when shown."""
    from ..notebook import ask_yes_no

    arguments = "arguments are" if clipped > 1 else "argument is"
    hidden = f" {clipped} {arguments} not shown in full." if clipped else ""
    text = f"Sign {runs} run{'' if runs == 1 else 's'} with {calls} call{'' if calls == 1 else 's'}?{hidden} [y]es, [n]o: "
    return ask_yes_no(text)
