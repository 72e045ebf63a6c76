"""Fits the pictures of a conversation to the limits of a model, or replaces them with words.

A model that takes no pictures refuses the whole request; large ones cost tokens and time. If it is
unknown whether a model takes pictures, they are sent until its server refuses them, which the
process then remembers. Only the requests change: log and record have the pictures as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ..events import Error, Event, Result, User
from ..models import Block, FittedPicture, ImageBlock, Message, Model, ResultBlock, TextBlock
from ..wire import Attachment, describe_picture, describe_size

MOST_PICTURES = 20  # pictures of a request
# three reasons why a picture is not sent, in the words that replace the picture
BLIND = "a picture the model cannot see"
EARLIER = "an earlier picture, not sent again"
LEFT_OUT = "a picture left out, the conversation is too long"
WORDS = "words"  # the key of an attachment that has words in place of its data
# words of a refusal that is about one picture: the model may see others
_ABOUT_ONE_PICTURE = re.compile(
    r"could not process|cannot process|invalid (image|base64|url)|corrupt|exceed|too (large|big|many|small)"
    r"|at most [1-9]|dimension|download|unsupported image (type|format)|media.?type|decode",
    re.IGNORECASE,
)
_refused: set[tuple[str, str]] = set()  # models of this process that refused pictures


def _model_key(model: Model) -> tuple[str, str]:
    return model.name, str(getattr(model, "address", ""))


def is_blind(model: Model) -> bool:
    """Return whether `model` is known to take no pictures."""
    vision = getattr(model, "vision", None)
    return vision is False or (vision is None and _model_key(model) in _refused)


class Vision:
    """Prepares the pictures of one run's requests; scales each picture once."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._blind = is_blind(model)
        self._fitted: dict[tuple[str, int], FittedPicture] = {}  # by base64 and largest side
        self._reported: set[str] = set()
        self._errors: list[str] = []

    def omit(self, refusal: str = "") -> bool:
        """Send words instead of pictures from now on; return whether that changes anything.

        `refusal`: the words of the server that refused pictures, which later runs remember.
        """
        if refusal and not _ABOUT_ONE_PICTURE.search(refusal):
            _refused.add(_model_key(self._model))
        changes, self._blind = not self._blind, True
        return changes

    def take_errors(self) -> list[Event]:
        """Return the errors, not yet taken, about pictures that could not be sent."""
        messages, self._errors = self._errors, []
        return [Error(code="no_picture", message=words) for words in messages]

    def view(self, run: Iterable[Event]) -> list[Event]:
        """Return the events of a run with each picture as the model gets it."""
        return list(map(self._view_event, run))

    def _view_event(self, event: Event) -> Event:
        if not isinstance(event, User | Result) or not event.attachments:
            return event
        attachments = tuple(
            self._view_picture(n, a, event) if a.get("data") else dict(a)
            for n, a in Attachment.number_all(event.attachments)
        )
        return msgspec.structs.replace(event, attachments=attachments)

    def _view_picture(
        self, number: int, attachment: Mapping[str, Any], event: Event
    ) -> dict[str, Any]:
        """Return a picture as the model takes it, or with words in place of its data."""
        name = picture_name(number, attachment)
        if self._blind:
            return {**attachment, "data": "", WORDS: describe_picture(name, attachment, BLIND)}
        data = str(attachment["data"])
        by_user = isinstance(event, User) and not attachment.get("name")
        side = FittedPicture.USER_SIDE if by_user else FittedPicture.SIDE
        picture = self._fitted.get((data, side))
        if picture is None:
            picture = self._fitted[data, side] = FittedPicture.fit(data, side)
        if not picture.why:
            return {**attachment, "media_type": picture.media_type, "data": picture.data}
        text = describe_picture(name, attachment, picture.why)
        if text not in self._reported:
            self._reported.add(text)
            self._errors.append(
                f"The model did not get {_describe_for_user(name, attachment, event)}. {picture.advice}"
            )
        return {**attachment, "data": "", WORDS: text}


def _describe_for_user(name: str, attachment: Mapping[str, Any], event: Event) -> str:
    """Return a picture in words for people, such as `figure 1 of look (3000×1500)`."""
    of = f" of {event.name}" if isinstance(event, Result) and event.name else ""
    size = describe_size(attachment)
    return f"{name}{of}{f' ({size})' if size else ''}"


def picture_name(number: int, attachment: Mapping[str, Any]) -> str:
    """Return the name of a picture: its variable's name, or `figure N`."""
    name = attachment.get("name")
    return name if isinstance(name, str) and name else f"figure {number}"


def replace_with_words(
    attachments: Sequence[Mapping[str, Any]], why: str
) -> tuple[dict[str, Any], ...]:
    """Return attachments with words in place of their pictures.

    `why`: why the pictures are not sent, in words.
    """
    replaced = [dict(attachment) for attachment in attachments]
    for (number, attachment), new in zip(Attachment.number_all(attachments), replaced, strict=True):
        if attachment.get("data"):
            text = describe_picture(picture_name(number, attachment), attachment, why)
            new |= {"data": "", WORDS: text}
    return tuple(replaced)


def write_blocks(attachments: Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    """Return the attachments of a message as blocks: a picture, or the words in its place."""
    blocks: list[Block] = []
    for attachment in attachments:
        kind, data = attachment.get("media_type"), attachment.get("data")
        if data and isinstance(data, str) and isinstance(kind, str):  # a record may say anything
            blocks.append(ImageBlock(kind, data))
        elif attachment.get(WORDS):
            blocks.append(TextBlock(f"{attachment[WORDS]}\n"))
    return tuple(blocks)


def write_captions(content: str, attachments: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of a result with a caption for each picture.

    For a picture that is not sent, the words in its place replace the caption.
    """
    for number, attachment in Attachment.number_all(attachments):
        # 0: a table or widget, which the text describes already
        if not number and not attachment.get(WORDS):
            continue
        text = str(attachment.get(WORDS) or "")
        caption = _find_caption(number, content)
        if text and caption:
            content = content.replace(caption, text, 1)
        elif text or not caption:
            content = f"{content}\n{text or describe_picture(number, attachment)}"
    return content


def _find_caption(number: int, content: str) -> str:
    """Return the caption that a text has for picture `number`, or ""."""
    match = re.search(rf"\[figure {number}(?:: (?:\d+×\d+ pixels|an? \w+ chart))?\]", content)
    return match[0] if match else ""


def keep_newest(messages: Sequence[Message], most: int = MOST_PICTURES) -> tuple[Message, ...]:
    """Return messages with the oldest pictures beyond `most` as words."""
    pictures_left = most  # below 0 once there are more pictures
    newest_first: list[Message] = []
    for message in reversed(messages):
        blocks: list[Block] = []
        for block in reversed(message.blocks):
            if isinstance(block, ImageBlock):
                pictures_left -= 1
                blocks.append(block if pictures_left >= 0 else TextBlock(f"[{EARLIER}]\n"))
            elif isinstance(block, ResultBlock) and block.pictures:
                pictures = block.pictures[-pictures_left:] if pictures_left > 0 else ()
                pictures_left -= len(block.pictures)
                mark = "" if len(pictures) == len(block.pictures) else f"\n[{EARLIER}]"
                blocks.append(
                    msgspec.structs.replace(block, pictures=pictures, content=block.content + mark)
                )
            else:
                blocks.append(block)
        newest_first.append(msgspec.structs.replace(message, blocks=tuple(reversed(blocks))))
    return tuple(reversed(newest_first))
