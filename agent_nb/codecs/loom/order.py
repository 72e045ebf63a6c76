"""Orders the frames of one Loom session by `event_id`, each once (seed 002 § 2, § 7.2, § 7.3).

After a reconnection frames come twice or out of order, which would repeat or garble a text. Of the
frames 1, 3, 2, 2 it passes on 1, 2, 3.

Rules
- A repeat (same id, same content) is dropped. The same id with other content is the sender's fault:
  that frame is dropped and counted as a loss. Only the newest `REMEMBERED` ids are compared.
- A frame whose id is above the one that is due waits, until more than `WINDOW` frames wait. In a
  live stream it waits only until the next `tick`, because a stream may skip ids or begin late; but
  up to `PATIENCE` seconds once a frame has come after one with a higher id.
- Ids may begin anew at 0 or 1, after a reply or with a frame of other content under that id, unless
  that id is the newest.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...wire import dumps
from ..losses import Losses

WINDOW = 64  # frames
PATIENCE = 0.2  # s
REMEMBERED = 1024  # ids of past frames
Obj = dict[str, Any]


class FrameOrder:
    """Puts the frames of one session in order."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._next: int | None = None  # the id that is due; None before the first numbered frame
        # keys: (id, whether it is a reply), since a reply may share its id with a frame
        self._held: dict[tuple[int, bool], Obj] = {}
        self._seen: OrderedDict[tuple[int, bool], int] = OrderedDict()  # -> hash of the frame
        self._replied = False  # the newest frame passed on is a reply
        # a frame has come after one with a higher id; false again once a wait was in vain
        self._saw_disorder = False
        # when the first `tick` found frames that wait (s); None: none wait, or no tick came since
        self._wait_began: float | None = None

    @property
    def waits(self) -> bool:
        """Whether early frames wait for those before them."""
        return bool(self._held)

    def accept_frame(self, frame: Obj) -> list[Obj]:
        """Take a frame; return those that are due now."""
        number = frame.get("event_id")
        if type(number) is not int:
            out = [*self.flush(), frame]
            self._replied = self._replied or "reply" in frame
            return out
        key, content = (number, "reply" in frame), hash(dumps(frame))
        known = self._seen.get(key)
        if self._begins_anew(number, has_changed=known not in (None, content)):
            out = [*self.flush(), frame]
            self._seen = OrderedDict({key: content})
            self._expect_after(number, frame)
            return out
        if known is not None:
            self._count_repeat(frame, has_changed=known != content)
            return []
        self._seen[key] = content
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return self._pass_or_hold(key, frame)

    def _begins_anew(self, number: int, *, has_changed: bool) -> bool:
        """Return whether the ids begin again; `has_changed`: the id had come with other content."""
        is_old = self._next is not None and number + 1 < self._next
        return number in (0, 1) and (self._replied or (has_changed and is_old))

    def tick(self, now: float) -> list[Obj]:
        """Return the frames that have waited long enough at `now` (s)."""
        if not self._held:
            return []
        if self._wait_began is None:
            self._wait_began = now
        if self._saw_disorder and abs(now - self._wait_began) < PATIENCE:
            return []
        self._saw_disorder = False
        return self.flush()

    def flush(self) -> list[Obj]:
        """Stop waiting: return the held frames, in order."""
        frames = [self._held[key] for key in self._list_held_keys()]
        if frames:
            numbers = {number for number, _ in self._held}
            last = max(numbers)
            missing = last + 1 - self._next - len(numbers) if self._next is not None else 0
            self._expect_after(last, frames[-1])
            if missing > 0:
                reason = "the sender skipped ids, or frames were lost on the way"
                self._losses.add("missing event_id", reason, detail=True)
        self._held.clear()
        self._wait_began = None
        return frames

    def _count_repeat(self, frame: Obj, *, has_changed: bool) -> None:
        """Count a frame whose id came before, with the same or with other content, as a loss."""
        if has_changed:
            reason = "its event_id had come before with other content"
            self._losses.add("conflicting frame", reason, raw=dumps(frame))
        else:
            reason = "its event_id and content had come before"
            self._losses.add("repeated frame", reason, detail=True)

    def _list_held_keys(self) -> list[tuple[int, bool]]:
        """Return the keys of the held frames by id; of equal ids, the one that came first."""
        return sorted(self._held, key=lambda key: key[0])

    def _pass_or_hold(self, key: tuple[int, bool], frame: Obj) -> list[Obj]:
        """Hold an early frame; return any other, and the held frames that follow it."""
        number, _ = key
        if self._is_due(number):
            self._saw_disorder = self._saw_disorder or bool(self._held)
            self._expect_after(number, frame)
            return [frame, *self._take_due()]
        if self._next is not None and number < self._next:
            self._losses.add("late frame", "frames with later ids had been passed on", detail=True)
            self._saw_disorder = True
            return [frame]
        self._held[key] = frame
        return self.flush() if len(self._held) > WINDOW else []

    def _is_due(self, number: int) -> bool:
        """Return whether no frame is missing before this one."""
        if self._next is None:
            return number in (0, 1)
        # after a reply the next run begins with the id of the reply, or with the id after it
        return number == self._next or (self._replied and number == self._next + 1)

    def _expect_after(self, number: int, frame: Obj) -> None:
        """Set the id that is due after a frame; a reply does not use up its id."""
        self._replied = "reply" in frame
        self._next = number if self._replied else number + 1

    def _take_due(self) -> list[Obj]:
        """Return the held frames that are due now."""
        out = []
        for number, is_reply in self._list_held_keys():
            # a reply may repeat the id of the frame before it: it is due although its id is not
            if not self._is_due(number) and self._next is not None and number > self._next:
                break
            out.append(self._held.pop((number, is_reply)))
            self._expect_after(number, out[-1])
        if not self._held:
            self._wait_began = None
        return out
