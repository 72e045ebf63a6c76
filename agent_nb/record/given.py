"""What the user gave a run, and how it differs from what a recorded run was given.

Why beside the digests (`fingerprint`): digests find a record; a person who changed something wants
to read what.

Rules
- Both values are shown, texts as lines of a difference; of the conversation the first turn that
  differs, of an attachment its type and size.
- Older records name fewer values; what is missing is not compared. Pure.
"""

from __future__ import annotations

import base64
import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any

import msgspec

from ..events import Event, RunStart, User
from .fingerprint import OUTPUT, inputs_of, turns_of
from .pictures import compare_all
from .sides import show_difference

_SIZE = re.compile(r": \d+×\d+ pixels(?=\])")
LONGEST = 20  # lines of a shown difference
WORDS = 60  # characters of a prompt that name a turn


class Given(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One prompt and every input of its run.

    `model` is the requested one; `history` holds the earlier runs, oldest first; `output` is the
    type of the answer: its `name` and JSON `schema`.
    """

    prompt: str
    attachments: Sequence[Mapping[str, Any]] = ()
    model: str = ""
    tools: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    history: Sequence[Sequence[Event]] = ()
    output: Mapping[str, Any] | None = None

    @cached_property
    def inputs(self) -> dict[str, str]:
        """The digests, by the names of `fingerprint.INPUTS`."""
        return inputs_of(**msgspec.structs.asdict(self))

    @cached_property
    def turns(self) -> list[str]:
        """The digest of each earlier run, oldest first."""
        return turns_of(self.history)

    def alike(self, recorded: Sequence[Event]) -> Given | None:
        """Return it with the recorded pictures where its own look the same, None if they do not.

        Only figures of the prompt, which have a name, may be other files of the same picture: a
        figure that is drawn again is rarely the same file (`pictures`). An attached file is equal
        or another.
        """
        user = next((e for e in recorded if isinstance(e, User) and not e.span), User())
        if len(user.attachments) != len(self.attachments):
            return None
        pairs = list(zip(user.attachments, self.attachments, strict=True))
        drawn = [pair for pair in pairs if pair[1].get("name")]
        found = compare_all(*zip(*drawn, strict=True)) if drawn else None
        if found is None or found.difference or found.unseen:
            return None
        same = [before if now.get("name") else now for before, now in pairs]
        alike = _unsized(user.content) == _unsized(self.prompt)
        prompt = user.content if alike else self.prompt
        return msgspec.structs.replace(self, prompt=prompt, attachments=same)

    def named(self, recorded: Sequence[Event], names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of changed inputs for people.

        A changed prompt with the same words has other attachments.
        """
        user = next((e for e in recorded if isinstance(e, User) and not e.span), User())
        same = user.content.strip() == self.prompt.strip()
        return tuple("attachment" if name == "prompt" and same else name for name in names)

    def differences(self, recorded: Sequence[Event], names: Sequence[str]) -> list[str]:
        """Describe how the inputs `names` differ from those of a recorded run."""
        start = next((e for e in recorded if isinstance(e, RunStart) and not e.span), RunStart())
        user = next((e for e in recorded if isinstance(e, User) and not e.span), User())
        return [line for name in names for line in _WORDS[name](self, start, user)]


def _unsized(prompt: str) -> str:
    """Return a prompt without the sizes of its figures, which depend on their fonts."""
    return _SIZE.sub("", prompt)


def _prompt(given: Given, start: RunStart, user: User) -> Iterator[str]:
    if user.content.strip() != given.prompt.strip():
        yield from lines(user.content.strip(), given.prompt.strip())
    for number, (old, new) in enumerate(zip_longest(user.attachments, given.attachments), 1):
        if old is None or new is None:
            yield f"attachment {number} is {'new' if old is None else 'gone'}: {_size(new or old)}"
        elif (old.get("media_type"), old.get("data")) != (new.get("media_type"), new.get("data")):
            yield f"attachment {number} changed: {_size(old)} → {_size(new)}"


def _size(attachment: Mapping[str, Any]) -> str:
    try:
        size = f", {len(base64.b64decode(str(attachment.get('data') or ''))):,} bytes"
    except ValueError:
        size = ""
    return f"{attachment.get('media_type') or 'a file'}{size}"


def _model(given: Given, start: RunStart, user: User) -> Iterator[str]:
    old, new = str(start.settings.get("asked", start.model)), given.model
    # the name of a scripted model includes a digest of its answers
    if "#" in new and old.partition("#")[0] == new.partition("#")[0]:
        yield f"model: the script {new.partition('#')[0]} says other words"
    else:
        yield f"model: {old or 'chosen by the environment'} → {new or 'chosen by the environment'}"


def _tools(given: Given, start: RunStart, user: User) -> Iterator[str]:
    asked = start.settings.get("asked_tools")
    old = [str(name) for name in asked] if isinstance(asked, list | tuple) else start.tools
    yield f"tools: {', '.join(old) or 'none'} → {', '.join(given.tools) or 'none'}"


def _settings(given: Given, start: RunStart, user: User) -> Iterator[str]:
    old, new = start.settings, given.settings
    before, after = str(old.get("system") or ""), str(new.get("system") or "")
    if before != after:
        yield from ["system:", *lines(before, after)]
    sampling = [
        value if isinstance(value, Mapping) else {}
        for value in (old.get("sampling"), new.get("sampling"))
    ]
    for name in sorted({*sampling[0], *sampling[1]}):
        one, other = (_value(side.get(name)) for side in sampling)
        if one != other:
            yield f"{name}: {one} → {other}"
    dialect = str(new.get("dialect") or "")
    if dialect != str(old.get("asked_dialect", dialect if dialect == start.dialect else "")):
        yield f"dialect: {old.get('asked_dialect') or start.dialect or 'that of the model'} → {dialect or 'that of the model'}"


def _output(given: Given, start: RunStart, user: User) -> Iterator[str]:
    recorded = start.settings.get(OUTPUT)
    old, new = (side if isinstance(side, Mapping) else {} for side in (recorded, given.output))
    names = [str(side.get("name") or "none") for side in (old, new)]
    if names[0] != names[1]:
        yield f"output: the type changed: {names[0]} → {names[1]}"
        return
    before, after = (
        json.dumps(side.get("schema"), indent=1, ensure_ascii=False, sort_keys=True)
        for side in (old, new)
    )
    yield from [f"output: the type changed: {names[0]}", *lines(before, after)]


def _value(value: Any) -> str:
    return "not set" if value is None else str(value)


def _conversation(given: Given, start: RunStart, user: User) -> Iterator[str]:
    known = start.settings.get("turns")
    if not isinstance(known, list):
        yield "conversation: the turns before this one are not those of the recording"
        return
    place = next(
        (n for n, (old, new) in enumerate(zip_longest(known, given.turns)) if old != new), 0
    )
    if place >= len(known):
        words = "is new"
    elif place >= len(given.turns):
        words = "is missing"
    else:
        words = "is not what it was"
    asked = (
        (e.content for e in given.history[place] if isinstance(e, User) and not e.span)
        if place < len(given.history)
        else iter(())
    )
    first = " ".join(next(asked, "").split())[:WORDS]
    named = f"turn {place + 1}{f' (“{first}”)' if first else ''}"
    yield f"conversation: {named} {words}; recorded were {len(known)}, now {_turns(len(given.turns))}"


def _turns(number: int) -> str:
    return f"there {'is' if number == 1 else 'are'} {number}"


_WORDS: Mapping[str, Callable[[Given, RunStart, User], Iterator[str]]] = {
    "prompt": _prompt,
    "model": _model,
    "tools": _tools,
    "settings": _settings,
    "conversation": _conversation,
    OUTPUT: _output,
}


def lines(before: str, after: str) -> list[str]:
    """Return the difference of two texts as lines, `LONGEST` at most; none only for equal texts."""
    found = list(
        difflib.unified_diff(
            before.splitlines(), after.splitlines(), "recorded", "now", lineterm="", n=1
        )
    )
    if not found and before != after:
        found = [
            f"{mark}{each}" for mark, each in zip("-+", show_difference(before, after), strict=True)
        ]
    rest = len(found) - LONGEST
    if rest <= 0:
        return found
    return [*found[:LONGEST], f"… {rest} more line{'' if rest == 1 else 's'}"]
