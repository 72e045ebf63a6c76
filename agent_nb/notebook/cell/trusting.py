"""The yes to what the notebook's folder offers: asked for when a cell starts, and given by
`trust-folder` in a cell or a terminal.

Rules
- A question names the file and what it would do, in full; no value is shown. Whatever is not
  clearly a yes is a no.
- A no holds until the kernel restarts, or `%agent trust-folder` says otherwise. Where nobody can be
  asked nothing is allowed.
- Naming a folder allows what it offers now: the keys of its `.env`, each policy in it, the
  configuration that AGENT_NB_CONFIG names in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...errors import NotAllowed, UsageError
from ...host import trust
from ...host.paths import tilde
from ...host.trust import Offer
from ...models import config, keys
from ...tools import policy_file
from ..notices import printable
from .approvals import ATTEMPTS, LONGEST

YES, NO = ("y", "yes"), ("n", "no", "")
NOT_KEPT = "It could not be written down and holds until this process ends."


def permit(offers: Callable[[], Iterable[Offer]], declined: set[Offer], *, stdin: bool) -> None:
    """Ask about each of the `offers` that was not `declined` before; add those that are. Raises
    NotAllowed where nothing goes without.
    """
    while True:
        try:
            open_ = [offer for offer in offers() if offer not in declined]
            fault = None
        except NotAllowed as needed:
            open_, fault = (
                [o for o in (needed.offer,) if isinstance(o, Offer) and o not in declined],
                needed,
            )
        if not open_ or not stdin:
            break
        for offer in open_:
            if _said_yes(offer):
                trust.allow([offer])
            else:
                declined.add(offer)
    if fault is not None:
        raise fault


def _said_yes(offer: Offer) -> bool:
    from IPython.core.error import StdinNotImplementedError

    text = f"{question(offer)}\nAllow it? [y]es, [n]o: "
    for _ in range(ATTEMPTS):
        try:
            said = input(text).strip().lower()
        except (EOFError, StdinNotImplementedError):
            return False
        if said in (*YES, *NO):
            return said in YES
        text = "Please answer y or n: "
    return False


def question(offer: Offer) -> str:
    """Return what a yes would allow, as text."""
    does = printable(offer.does)
    does = (
        does
        if len(does) <= LONGEST
        else f"{does[:LONGEST]} [… {len(does) - LONGEST} more characters: read the file]"
    )
    for_ = (
        "in this folder, from now on"
        if offer.what == "keys"
        else "as long as the file stays as it is"
    )
    return f"{printable(os.path.basename(offer.file))} in {printable(tilde(Path(offer.folder)))} {does}. A yes counts {for_}."


def trust_folder(arguments: Sequence[str]) -> str:
    """Do what `trust-folder` with these words asks for, and return what there is to say. Raises
    UsageError.
    """
    words = list(arguments)
    for flag, work in FLAGS.items():
        if flag in words:
            words.remove(flag)
            return work(words)
    if wrong := [word for word in words if word.startswith("-")]:
        raise UsageError(
            f"There is no option {wrong[0]}. Write trust-folder [FOLDER or FILE …] [{' | '.join(FLAGS)}]."
        )
    found = [offer for word in words or ["."] for offer in offered(Path(word).expanduser())]
    if not found:
        places = ", ".join(words) or "this folder"
        return (
            f"There is nothing to allow in {places}: no key in a .env, no policy with allow rules."
        )
    kept = trust.allow(found)
    return "\n".join(
        [*(f"allowed: {offer.file} {offer.does}" for offer in found), *([] if kept else [NOT_KEPT])]
    )


def offered(place: Path) -> list[Offer]:
    """Return what a folder offers, or a file. Raises UsageError for what is neither, and for a file
    that is no policy.
    """
    if place.is_file() and place.name != ".env":
        found = policy_file.read(place)
        return [found] if found is not None else []
    if not place.exists():
        raise UsageError(f"File or folder not found: {place}.")
    folder = place if place.is_dir() else place.parent
    return [
        offer
        for offer in (keys.offered(folder=folder), *_policies(folder), _configuration(folder))
        if offer is not None
    ]


def _policies(folder: Path) -> Iterator[Offer | None]:
    for path in sorted(p for p in folder.iterdir() if p.suffix.lower() in (".yaml", ".yml")):
        with suppress(UsageError):  # another YAML file
            yield policy_file.read(path)


def _configuration(folder: Path) -> Offer | None:
    path = config.path()
    if path.is_absolute() or not (folder / path).is_file():
        return None
    return config.read(folder / path)[1]


def listing(_: Sequence[str] = ()) -> str:
    """Return which folders may do what."""
    rows = [f"{place} may {may}" for place, may in trust.listed()]
    if trust.everywhere():
        rows.insert(
            0, f"{trust.VARIABLE} is set: in this process every folder may give keys and be obeyed"
        )
    return "\n".join(rows) or "no folder may give keys (.env) or allow anything in a policy"


def _revoke(words: Sequence[str]) -> str:
    done: dict[str, Any] = {word: trust.revoke(os.path.expanduser(word)) for word in words or ["."]}
    return "\n".join(
        f"{word}: {'nothing is allowed any more' if had else 'nothing was allowed'}"
        for word, had in done.items()
    )


FLAGS: dict[str, Callable[[Sequence[str]], str]] = {"--list": listing, "--revoke": _revoke}
