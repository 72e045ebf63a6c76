"""Order the frames of one Loom session by `event_id`, each once (seed 002 § 2, § 7.2, § 7.3).

Rules
- A frame without an id is passed on in its place; legacy streams have no others.
- A repeat (same id, same content) is dropped; the same id with other content is the sender's fault:
  dropped and counted as a loss.
- An early frame waits, at most for `WINDOW` frames; ids that never come are counted, not waited
  for.
- Live (`tick`), missing ids alone delay nothing: a stream may count by more than one or begin late.
  Frames wait, `PATIENCE` at most, only after one came behind a frame with a higher id, and until
  such a wait was in vain.
- A reply does not use up its id: the session's next run may begin with it, with the next, or with
  0 or 1.
- Memory is bounded, whatever the length of the stream.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...wire import dumps
from ..losses import Losses

WINDOW = 64
PATIENCE = 0.2  # s
REMEMBERED = 1024
Obj = dict[str, Any]


class Order:
    """The order of one session."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._next: int | None = None
        self._held: dict[int, Obj] = {}
        self._seen: OrderedDict[tuple[int, bool], int] = OrderedDict()
        self._replied = False
        self._reorders = False  # a frame came after one with a higher id
        self._since: float | None = None  # when the wait began

    @property
    def waits(self) -> bool:
        """Whether frames wait for earlier ones."""
        return bool(self._held)

    def take(self, frame: Obj) -> list[Obj]:
        """Take a frame; return those that are due now."""
        number, reply = frame.get("event_id"), "reply" in frame
        if type(number) is not int:
            out = [*self.flush(), frame]
            self._replied = self._replied or reply
            return out
        if number in (0, 1) and (self._replied or self._restarts(number, reply, frame)):
            return [*self.flush(), *self._begin(number, reply, frame)]
        if self._is_repeat(number, reply, frame):
            return []
        return self._place(number, reply, frame)

    def tick(self, now: float) -> list[Obj]:
        """Return the frames that have waited long enough at `now` (s)."""
        if not self._held:
            return []
        self._since = now if self._since is None else self._since
        if self._reorders and abs(now - self._since) < PATIENCE:
            return []
        self._reorders = False
        return self.flush()

    def flush(self) -> list[Obj]:
        """Stop waiting: return what is held, in order."""
        held = [self._held[n] for n in sorted(self._held)]
        if held:
            last = max(self._held)
            missing = last + 1 - self._next - len(held) if self._next is not None else 0
            self._replied = "reply" in held[-1]
            self._next = last if self._replied else last + 1
            if missing > 0:
                self._losses.add(
                    "missing event_id",
                    "the sender skipped ids, or frames were lost on the way",
                    detail=True,
                )
        self._held.clear()
        self._since = None
        return held

    def _begin(self, number: int, reply: bool, frame: Obj) -> list[Obj]:
        self._seen.clear()
        self._remember(number, reply, frame)
        self._replied = reply
        self._next = number + 1
        return [frame]

    def _restarts(self, number: int, reply: bool, frame: Obj) -> bool:
        """Return whether the sender counts anew: a first id comes again with other content."""
        before = self._seen.get((number, reply))
        return (
            self._next is not None
            and self._next > number + 1
            and before is not None
            and before != hash(dumps(frame))
        )

    def _is_repeat(self, number: int, reply: bool, frame: Obj) -> bool:
        before = self._seen.get((number, reply))
        if before is None:
            self._remember(number, reply, frame)
            return False
        if before == hash(dumps(frame)):
            self._losses.add(
                "repeated frame", "its event_id and content had come before", detail=True
            )
        else:
            self._losses.add(
                "conflicting frame",
                "its event_id had come before with other content",
                raw=dumps(frame),
            )
        return True

    def _remember(self, number: int, reply: bool, frame: Obj) -> None:
        self._seen[number, reply] = hash(dumps(frame))
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)

    def _place(self, number: int, reply: bool, frame: Obj) -> list[Obj]:
        due = self._next is None and number in (0, 1)
        due = due or (
            self._next is not None
            and (number == self._next or (self._replied and number == self._next + 1))
        )
        if due:
            self._reorders = self._reorders or bool(self._held)
            self._next = number if reply else number + 1
            self._replied = reply
            return [frame, *self._ready()]
        if self._next is not None and number < self._next:
            self._losses.add("late frame", "frames with later ids had been passed on", detail=True)
            self._reorders = True
            return [frame]
        self._held[number] = frame
        return self.flush() if len(self._held) > WINDOW else []

    def _ready(self) -> list[Obj]:
        out = []
        while self._next in self._held:
            frame = self._held.pop(self._next)
            out.append(frame)
            self._replied = "reply" in frame
            self._next += not self._replied
        self._since = self._since if self._held else None
        return out
