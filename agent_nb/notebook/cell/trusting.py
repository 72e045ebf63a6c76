"""Ask the user to allow what the notebook's folder offers (keys, policies, configuration).

Why: a downloaded folder may bring a stranger's keys and rules. A cell asks when it starts; the
command `trust-folder` allows it in a cell or a terminal. A no holds until the kernel restarts or
`%agent trust-folder` runs.

Rule: a question names the file and its effect, but no value. It counts the characters that it
leaves out of a long effect. Only a clear yes allows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ...errors import NotAllowed, UsageError
from ...host import Offer, shorten_path
from ...models import Config, Key
from ...tools import read_policy_offer
from ..notices import LONGEST, make_printable
from ..yes_no import NOT_SAVED, ask_yes_no

ACTS_FOR_USER = True  # it waits for the user's answer: ■ interrupts it (`interrupts.STAND_IN`)


def ask_permissions(
    offers: Callable[[], Iterable[Offer]], declined: set[Offer], *, stdin: bool
) -> None:
    """Ask about each of the `offers` that is not in `declined`, and add the refused ones to it.

    `offers` is called again after each round, since an allowed file may bring further ones.
    `stdin`: the user can be asked. Raises NotAllowed if an offer that the run requires stays
    refused.
    """
    while True:
        try:
            pending = [offer for offer in offers() if offer not in declined]
            fault = None
        except NotAllowed as refusal:
            required = refusal.offer
            pending = [required] if isinstance(required, Offer) and required not in declined else []
            fault = refusal
        if not pending or not stdin:
            break
        for offer in pending:
            question = f"{describe_offer(offer)}\nAllow it? [y]es, [n]o: "
            if ask_yes_no(question, empty_is_no=True):
                Offer.allow_all([offer])
            else:
                declined.add(offer)
    if fault is not None:
        raise fault


def describe_offer(offer: Offer) -> str:
    """Describe, as printable text, the effect of a yes to an offer and how long it lasts."""
    effect = make_printable(offer.does)
    if (more := len(effect) - LONGEST) > 0:
        effect = f"{effect[:LONGEST]} [… {more} more characters: read the file]"
    always, unchanged = "in this folder, from now on", "as long as the file stays as it is"
    duration = always if offer.what == "keys" else unchanged
    return f"{make_printable(os.path.basename(offer.file))} in {make_printable(shorten_path(Path(offer.folder)))} {effect}. A yes counts {duration}."


def trust_folder(arguments: Sequence[str]) -> str:
    """Run the command `trust-folder` and return its message. Raises UsageError."""
    paths = list(arguments)
    for flag, work in FLAGS.items():
        if flag in paths:
            paths.remove(flag)
            return work(paths)
    if wrong := [word for word in paths if word.startswith("-")]:
        raise UsageError(
            f"There is no option {wrong[0]}. Write trust-folder [FOLDER or FILE …] [{' | '.join(FLAGS)}]."
        )
    offers = [
        offer for word in paths or ["."] for offer in list_offers(Path(os.path.expanduser(word)))
    ]
    if not offers:
        names = ", ".join(paths) or "this folder"
        return (
            f"There is nothing to allow in {names}: no key in a .env, no policy with allow rules."
        )
    allowed = Offer.allow_all(offers)
    lines = [f"allowed: {offer.file} {offer.does}" for offer in offers]
    return "\n".join(lines if allowed else [*lines, NOT_SAVED])


def list_offers(path: Path) -> list[Offer]:
    """Return the offers of a folder or a policy file; a `.env` file stands for its folder.

    Raises UsageError if the path does not exist or cannot be read, or if the file is not a policy.
    """
    try:
        if path.is_file() and path.name != ".env":
            policies = read_policy_offer(path)
            return [policies] if policies is not None else []
        if not path.exists():
            raise UsageError(f"File or folder not found: {path}.")
        folder = path if path.is_dir() else path.parent
        policies_of_folder = list(_policy_offers(folder))
    except OSError as fault:
        raise UsageError(f"{path} cannot be read: {fault.strerror or fault}.") from None
    config, configuration = Config.path(), None
    if not config.is_absolute() and (folder / config).is_file():
        configuration = Config.read(folder / config)[1]
    offers = (Key.find_offer(folder=folder), *policies_of_folder, configuration)
    return [offer for offer in offers if offer is not None]


def _policy_offers(folder: Path) -> Iterator[Offer | None]:
    for path in sorted(p for p in folder.iterdir() if p.suffix.lower() in (".yaml", ".yml")):
        with suppress(UsageError):  # another YAML file
            yield read_policy_offer(path)


def list_permissions(_: Sequence[str] = ()) -> str:
    """Return the permissions of folders, one a line; for `trust-folder --list`."""
    rows = [f"{folder} may {may}" for folder, may in Offer.list_allowed()]
    if Offer.is_trusted_everywhere():
        effect = "in this process every folder may give keys and be obeyed"
        rows.insert(0, f"{Offer.TRUST_FOLDER} is set: {effect}")
    return "\n".join(rows) or "no folder may give keys (.env) or allow anything in a policy"


def _revoke_folders(arguments: Sequence[str]) -> str:
    lines = []
    for folder in arguments or ["."]:
        had_permissions = Offer.revoke_folder(os.path.expanduser(folder))
        effect = "nothing is allowed any more" if had_permissions else "nothing was allowed"
        lines.append(f"{folder}: {effect}")
    return "\n".join(lines)


# flags of `trust-folder` -> the function that handles the other arguments
FLAGS: dict[str, Callable[[Sequence[str]], str]] = {
    "--list": list_permissions,
    "--revoke": _revoke_folders,
}
