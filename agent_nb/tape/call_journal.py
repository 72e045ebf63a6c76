"""The journal of a model call in progress: the answer so far survives a kernel that dies.

Why: the record of a call is made when its cell ends, because later requests hold the results of its
tools. Until then a journal holds its run, as it does for every run (`record.journal`). The journal
holds no exchange, so a run that is recovered from it is never replayed.

Rules
- The journal holds each part of an answer before the client receives it, except text that may be
  the beginning of a key or of the home folder. A compressed answer is written when it has ended.
- A fault of the journal must not break the library's call: the client gets its answer all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ..agent import AnswerReader
from ..events import EventLog
from ..models import make_decoder
from ..record import Journal
from .exchange import Exchange, Request, Response
from .prices import Prices
from .redaction import WholeHomeRedaction, find_secrets
from .run_log import add_events, begin_log, end_log


class CallJournal:
    """Writes the run of one live exchange, while it goes on, into `log` and a journal."""

    def __init__(self, request: Request, headers: Mapping[str, str]) -> None:
        self._request, self._headers = request, headers
        self.log = EventLog()
        self._reader: AnswerReader | None = None
        self._journal: Journal | None = None
        self._has_read = False  # whether a part of the answer has been written

    def open(self, secrets: Mapping[str, str], open_journal: Callable[[str], Journal]) -> None:
        """Begin the log, and the journal that `open_journal` returns for the id of the run.

        Called before `receive`. `secrets`: values by name, beside those that the request carries.
        """
        redaction = WholeHomeRedaction({**secrets, **find_secrets(self._request, self._headers)})
        decoder = make_decoder(self._request.path)
        if decoder is not None:
            self._reader = AnswerReader(decoder, redaction)
            self._journal = open_journal(self.log.run)
            self.log.subscribe(self._journal)
        begin_log(self.log, self._request, redaction.value)

    def receive(self, status: int, headers: Mapping[str, str], piece: bytes) -> None:
        """Write the events of a piece of the answer; `end` reads a compressed one, and an error."""
        if status < 400 and headers.get("content-encoding", "identity") == "identity":
            self._read(piece)

    def end(self, exchange: Exchange | None) -> None:
        """End log and journal with a redacted exchange; None: no answer came, drop the journal."""
        if exchange is not None:
            with suppress(Exception):  # see the rules
                self._read_rest(exchange.response)
                end_log(self.log, exchange, self._reader, Prices())
        if self._journal is not None:
            self._journal.close(discard=exchange is None)

    def _read_rest(self, response: Response) -> None:
        """Read what `receive` has left of an answer, which is all of a compressed one."""
        if self._reader is None or response.status >= 400:
            return
        if not self._has_read:
            for piece in response.body.pieces():
                self._read(piece)
        add_events(self.log, self._reader.close())

    def _read(self, piece: bytes) -> None:
        if self._reader is None:
            return
        self._has_read = True
        with suppress(Exception):  # see the rules
            add_events(self.log, self._reader.feed(piece))
