"""`jupyter agent-nb run --stream CODEC`: writes the events of the runs to stdout as they happen.

Why a file (`cell.event_file`) between kernel and stdout: messages of a kernel end up in the
notebook, and not every system has named pipes. If the reader of stdout goes away, the stream ends
and the runs go on.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..codecs import Codec, Losses

BEAT = 0.03  # seconds between two reads of the file
CHUNK = 1 << 20  # bytes


class Relay:
    """Translates the events of one notebook's runs to the format `codec`; a context manager.

    Entering it makes the file `path`, to which the runs write (`ExecutionOptions.stream`), and
    starts the thread that reads it. `write` receives text, under `lock` if several relays share an
    output. Raises UsageError on an unknown codec.
    """

    def __init__(
        self, codec: str, write: Callable[[str], Any], lock: threading.Lock | None = None
    ) -> None:
        from ..codecs import named

        target, form = named(codec)
        self._encoder = target.encoder(form=form)
        self._decoder = named("canonical")[0].decoder()
        self._end = "\n" if self._encoder.framing == "ndjson" else ""
        self._write, self._lock = write, lock or threading.Lock()
        self._folder = ""
        self._over = threading.Event()
        self._reader_gone = False
        self._thread = threading.Thread(target=self._run, name="agent_nb relay", daemon=True)
        self.path = ""

    @staticmethod
    def allows_overlap(codec: str) -> bool:
        """Return whether the events of several runs may alternate in a stream of this format.

        Raises UsageError on an unknown codec.
        """
        from ..codecs import named

        target: Codec = named(codec)[0]
        return target.interleaves and "run" in target.envelope

    @property
    def losses(self) -> Losses:
        """The losses of the encoder."""
        return self._encoder.losses

    def __enter__(self) -> Relay:
        self._folder = tempfile.mkdtemp(prefix="agent-nb-")
        self.path = str(Path(self._folder) / "events.ndjson")
        Path(self.path).touch(mode=0o600)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        with Path(self.path).open("rb") as file:
            last_read = False  # the read after `__exit__` gets the events since the read before it
            while not last_read:
                last_read = self._over.wait(BEAT)
                while data := file.read(CHUNK):
                    self._write_all(
                        text
                        for event in self._decoder.feed(data)
                        for text in self._encoder.feed(event)
                    )
            self._write_all(self._encoder.close())

    def _write_all(self, texts: Iterable[str]) -> None:
        output = "".join(text + self._end for text in texts)
        if not output or self._reader_gone:
            return
        try:
            with self._lock:
                self._write(output)
        except (OSError, ValueError):  # the reader has gone
            self._reader_gone = True
