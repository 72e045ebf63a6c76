"""The inputs of a run, and how they differ from the inputs of a recorded run.

Why in addition to digests (`fingerprint`): a digest finds a record, but a user whose record does
not match wants to read what changed.
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
from ..wire import as_dict
from .fingerprint import OUTPUT, Digests, digest_turns
from .pictures import PictureComparison
from .side_by_side import SideBySide

# the size of a figure, in the text that stands for the figure in a prompt
_FIGURE_SIZE = re.compile(r": \d+×\d+ pixels(?=\])")
LONGEST_PROMPT = 60  # characters of the prompt by which a turn is named


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
        return digest_turns(self.history)

    def match_figures(self, recorded: Sequence[Event]) -> RunInputs | None:
        """Return these inputs with the recorded figures in place of their own.

        None without figures, with another number of attachments, or if the figures look different
        or cannot be compared. Why: a figure that is drawn again is rarely the same file
        (`pictures`). Only attachments with a name are figures. The recorded prompt is taken, too,
        if it differs only in the sizes of figures.
        """
        user = User.first_in(recorded)
        if len(user.attachments) != len(self.attachments):
            return None
        pairs = list(zip(user.attachments, self.attachments, strict=True))
        figures = [pair for pair in pairs if pair[1].get("name")]
        if not figures:
            return None
        comparison = PictureComparison.of_all(*zip(*figures, strict=True))
        if comparison.difference or comparison.unseen:
            return None
        attachments = [old if new.get("name") else new for old, new in pairs]
        same_text = _without_sizes(user.content) == _without_sizes(self.prompt)
        prompt = user.content if same_text else self.prompt
        return msgspec.structs.replace(self, prompt=prompt, attachments=attachments)

    def name_inputs(self, recorded: Sequence[Event], names: Sequence[str]) -> tuple[str, ...]:
        """Return the `names` of changed inputs as the user should read them.

        "prompt" becomes "attachment" if the text of the prompt is the recorded one: only its
        attachments have changed then.
        """
        user = User.first_in(recorded)
        same = user.content.strip() == self.prompt.strip()
        return tuple("attachment" if name == "prompt" and same else name for name in names)

    def describe_differences(self, recorded: Sequence[Event], names: Sequence[str]) -> list[str]:
        """Return lines on how the inputs `names` differ from the inputs of a recorded run."""
        start, user = RunStart.first_in(recorded), User.first_in(recorded)
        return [line for name in names for line in _DESCRIBE[name](self, start, user)]


def _without_sizes(prompt: str) -> str:
    """Return a prompt without the sizes of its figures, which depend on their fonts."""
    return _FIGURE_SIZE.sub("", prompt)


# The functions of `_DESCRIBE` yield lines on how one input differs. They take the new inputs, then
# the two events that hold the recorded ones.


def _describe_prompt(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    if user.content.strip() != inputs.prompt.strip():
        yield from SideBySide(user.content.strip(), inputs.prompt.strip()).unified_diff()
    for number, (old, new) in enumerate(zip_longest(user.attachments, inputs.attachments), 1):
        if old is None or new is None:
            yield f"attachment {number} is {'new' if old is None else 'gone'}: {_describe_attachment(new or old)}"
        elif (old.get("media_type"), old.get("data")) != (new.get("media_type"), new.get("data")):
            yield f"attachment {number} changed: {_describe_attachment(old)} → {_describe_attachment(new)}"


def _describe_attachment(attachment: Mapping[str, Any]) -> str:
    """Return the type and the size of an attachment."""
    try:
        size = f", {len(base64.b64decode(str(attachment.get('data') or ''))):,} bytes"
    except ValueError:
        size = ""
    return f"{attachment.get('media_type') or 'a file'}{size}"


def _describe_model(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    old, new = str(start.settings.get("asked", start.model)), inputs.model
    # the name of a scripted model is NAME#DIGEST, with a digest of its answers
    if "#" in new and old.partition("#")[0] == new.partition("#")[0]:
        yield f"model: the script {new.partition('#')[0]} says other words"
    else:
        yield f"model: {old or 'chosen by the environment'} → {new or 'chosen by the environment'}"


def _describe_tools(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    requested = start.settings.get("asked_tools")
    old = [str(name) for name in requested] if isinstance(requested, list | tuple) else start.tools
    yield f"tools: {', '.join(old) or 'not chosen'} → {', '.join(inputs.tools) or 'not chosen'}"


def _describe_settings(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    """Yield the differences of the system message, of each sampling value, and of the dialect."""
    old, new = start.settings, inputs.settings
    old_system, new_system = str(old.get("system") or ""), str(new.get("system") or "")
    if old_system != new_system:
        yield from ["system:", *SideBySide(old_system, new_system).unified_diff()]
    old_sampling, new_sampling = as_dict(old.get("sampling")), as_dict(new.get("sampling"))
    for name in sorted({*old_sampling, *new_sampling}):
        values = (old_sampling.get(name), new_sampling.get(name))
        old_text, new_text = ("not set" if value is None else str(value) for value in values)
        if old_text != new_text:
            yield f"{name}: {old_text} → {new_text}"
    # older records lack the requested dialect: no request now, or one for the dialect that the run
    # used, then counts as unchanged
    dialect = str(new.get("dialect") or "")
    if dialect != str(old.get("asked_dialect", dialect if dialect == start.dialect else "")):
        yield f"dialect: {old.get('asked_dialect') or start.dialect or 'that of the model'} → {dialect or 'that of the model'}"


def _describe_output(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    old, new = as_dict(start.settings.get(OUTPUT)), as_dict(inputs.output)
    old_name, new_name = (str(side.get("name") or "none") for side in (old, new))
    if old_name != new_name:
        yield f"output: the type changed: {old_name} → {new_name}"
        return
    old_schema, new_schema = (
        json.dumps(side.get("schema"), indent=1, ensure_ascii=False, sort_keys=True)
        for side in (old, new)
    )
    yield f"output: the type changed: {new_name}"
    yield from SideBySide(old_schema, new_schema).unified_diff()


def _describe_conversation(inputs: RunInputs, start: RunStart, user: User) -> Iterator[str]:
    """Yield which earlier turn differs first, by its number and the beginning of its prompt."""
    old, new = start.settings.get("turns"), inputs.turn_digests  # older records have no `turns`
    if not isinstance(old, list):
        yield "conversation: the turns before this one are not those of the recording"
        return
    pairs = enumerate(zip_longest(old, new))
    turn = next((n for n, (old_turn, new_turn) in pairs if old_turn != new_turn), 0)
    if turn >= len(old):
        change = "is new"
    elif turn >= len(new):
        change = "is missing"
    else:
        change = "is not what it was"
    prompt = User.first_in(inputs.history[turn]).content if turn < len(inputs.history) else ""
    first = " ".join(prompt.split())[:LONGEST_PROMPT]
    turn_name = f"turn {turn + 1}{f' (“{first}”)' if first else ''}"
    yield f"conversation: {turn_name} {change}; recorded were {len(old)}, now there {'is' if len(new) == 1 else 'are'} {len(new)}"


# name of an input -> the function that describes how it differs
_DESCRIBE: Mapping[str, Callable[[RunInputs, RunStart, User], Iterator[str]]] = {
    "prompt": _describe_prompt,
    "model": _describe_model,
    "tools": _describe_tools,
    "settings": _describe_settings,
    "conversation": _describe_conversation,
    OUTPUT: _describe_output,
}
