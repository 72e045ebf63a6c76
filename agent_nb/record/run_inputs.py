"""The inputs of a run, and how they differ from the inputs of a recorded run.

Why beside the digests (`fingerprint`): digests find a record; a person who changed something wants
to read what.

Rules
- Both values are shown, texts as lines of a difference; of the conversation the first turn that
  differs, of an attachment its type and size.
- Older records name fewer values; what is missing is not compared. Pure.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any

import msgspec

from ..events import Event, RunStart, User
from .fingerprint import OUTPUT, Digests, turns_of
from .pictures import PictureComparison
from .sides import SideBySide

# the size in the description of a figure, as a prompt holds it
_SIZE = re.compile(r": \d+×\d+ pixels(?=\])")
LONGEST_PROMPT = 60  # characters of a prompt that name a turn


class RunInputs(msgspec.Struct, frozen=True, kw_only=True, dict=True):
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
    def digests(self) -> Digests:
        """The digest of each input."""
        return Digests.of_inputs(**msgspec.structs.asdict(self))

    @cached_property
    def turn_digests(self) -> list[str]:
        """The digest of each earlier run, oldest first."""
        return turns_of(self.history)

    def match_figures(self, recorded: Sequence[Event]) -> RunInputs | None:
        """Return these inputs with the recorded pictures if the own ones look the same, else None.

        Only figures of the prompt, which have a name, may be other files of the same picture: a
        figure that is drawn again is rarely the same file (`pictures`). An attached file is equal
        or another.
        """
        user = next((e for e in recorded if isinstance(e, User) and not e.span), User())
        if len(user.attachments) != len(self.attachments):
            return None
        pairs = list(zip(user.attachments, self.attachments, strict=True))
        drawn = [pair for pair in pairs if pair[1].get("name")]
        comparison = PictureComparison.of_all(*zip(*drawn, strict=True)) if drawn else None
        if comparison is None or comparison.difference or comparison.unseen:
            return None
        same = [before if now.get("name") else now for before, now in pairs]
        alike = _unsized(user.content) == _unsized(self.prompt)
        prompt = user.content if alike else self.prompt
        return msgspec.structs.replace(self, prompt=prompt, attachments=same)

    def name_inputs(self, recorded: Sequence[Event], names: Sequence[str]) -> tuple[str, ...]:
        """Return the changed inputs `names` in the words of the user.

        A changed prompt with the same words has other attachments.
        """
        user = next((e for e in recorded if isinstance(e, User) and not e.span), User())
        same = user.content.strip() == self.prompt.strip()
        return tuple("attachment" if name == "prompt" and same else name for name in names)

    def describe_differences(self, recorded: Sequence[Event], names: Sequence[str]) -> list[str]:
        """Describe how the inputs `names` differ from those of a recorded run."""
        start = next((e for e in recorded if isinstance(e, RunStart) and not e.span), RunStart())
        user = next((e for e in recorded if isinstance(e, User) and not e.span), User())
        return [line for name in names for line in _DESCRIBE[name](self, start, user)]


def _unsized(prompt: str) -> str:
    """Return a prompt without the sizes of its figures, which depend on their fonts."""
    return _SIZE.sub("", prompt)


def _prompt(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    if user.content.strip() != inputs.prompt.strip():
        yield from SideBySide(user.content.strip(), inputs.prompt.strip()).unified_diff()
    for number, (old, new) in enumerate(zip_longest(user.attachments, inputs.attachments), 1):
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


def _model(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    old, new = str(start.settings.get("asked", start.model)), inputs.model
    # the name of a scripted model includes a digest of its answers
    if "#" in new and old.partition("#")[0] == new.partition("#")[0]:
        yield f"model: the script {new.partition('#')[0]} says other words"
    else:
        yield f"model: {old or 'chosen by the environment'} → {new or 'chosen by the environment'}"


def _tools(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    requested = start.settings.get("asked_tools")
    old = [str(name) for name in requested] if isinstance(requested, list | tuple) else start.tools
    yield f"tools: {', '.join(old) or 'none'} → {', '.join(inputs.tools) or 'none'}"


def _settings(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    old, new = start.settings, inputs.settings
    before, after = str(old.get("system") or ""), str(new.get("system") or "")
    if before != after:
        yield from ["system:", *SideBySide(before, after).unified_diff()]
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


def _output(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    recorded = start.settings.get(OUTPUT)
    old, new = (side if isinstance(side, Mapping) else {} for side in (recorded, inputs.output))
    names = [str(side.get("name") or "none") for side in (old, new)]
    if names[0] != names[1]:
        yield f"output: the type changed: {names[0]} → {names[1]}"
        return
    before, after = (
        json.dumps(side.get("schema"), indent=1, ensure_ascii=False, sort_keys=True)
        for side in (old, new)
    )
    yield from [f"output: the type changed: {names[0]}", *SideBySide(before, after).unified_diff()]


def _value(value: Any) -> str:
    return "not set" if value is None else str(value)


def _conversation(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    known = start.settings.get("turns")
    if not isinstance(known, list):
        yield "conversation: the turns before this one are not those of the recording"
        return
    turn = next(
        (n for n, (old, new) in enumerate(zip_longest(known, inputs.turn_digests)) if old != new), 0
    )
    if turn >= len(known):
        change = "is new"
    elif turn >= len(inputs.turn_digests):
        change = "is missing"
    else:
        change = "is not what it was"
    prompts = (
        (e.content for e in inputs.history[turn] if isinstance(e, User) and not e.span)
        if turn < len(inputs.history)
        else iter(())
    )
    first = " ".join(next(prompts, "").split())[:LONGEST_PROMPT]
    named = f"turn {turn + 1}{f' (“{first}”)' if first else ''}"
    yield f"conversation: {named} {change}; recorded were {len(known)}, now {_turns(len(inputs.turn_digests))}"


def _turns(number: int) -> str:
    return f"there {'is' if number == 1 else 'are'} {number}"


_DESCRIBE: Mapping[str, Callable[[RunInputs, RunStart, User], Iterator[str]]] = {
    "prompt": _prompt,
    "model": _model,
    "tools": _tools,
    "settings": _settings,
    "conversation": _conversation,
    OUTPUT: _output,
}
