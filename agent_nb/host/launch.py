"""What the parent process decided for this one: whether it may run live, and its secret.

A front end copies a stranger's cell metadata into its requests, so a request proves no sender. Only
the starter of a kernel can put a secret into that kernel's environment.

Rules
- `LAUNCH` is made when the package is imported. What a notebook changes in the environment later
  does not undo `STRICT` or `RERUN=replay`.
- The secret is removed from `os.environ`, so that child processes never see it.
- What connects to a server for a run calls `check_address` first: a test that is meant to replay
  must not call a provider unnoticed.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ..errors import UsageError

SIZE = 32  # bytes of the secret, which is twice as many hexadecimal digits
_NOT_LIVE = "Nothing runs live here ({}). To record it, run this where that is not set: jupyter agent-nb run --inplace NOTEBOOK."
_PORTS = {"http": 80, "https": 443}  # scheme -> the port of a URL without one


class Launch:
    """How one process was started.

    `strict`: recorded runs are replayed or fail. `replays`: replay is the default of cells.
    `served_ports` are those of this process's running servers, which may be reached even where
    nothing runs live.
    """

    PROOF = "AGENT_NB_PROOF"  # variable with the secret, in hexadecimal digits
    STRICT = "AGENT_NB_STRICT"
    RERUN = "AGENT_NB_RERUN"  # the default mode of cells, for plain nbclient, papermill, nbmake
    REPLAY = "replay"
    TAPE = "AGENT_NB_TAPE"  # the tape (it records other libraries' calls) is on from the first cell
    NOTEBOOK = "AGENT_NB_NOTEBOOK"  # the notebook file, for kernels that cannot know it

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        secret = environment.pop(self.PROOF, "").encode("utf-8", "replace")
        self._secret = secret if len(secret) == 2 * SIZE else b""
        self.strict = environment.get(self.STRICT, "") not in ("", "0")
        self.replays = environment.get(self.RERUN) == self.REPLAY
        self.served_ports: set[int] = set()

    @property
    def tapes(self) -> bool:
        """Whether the tape is on from the first cell."""
        return os.environ.get(self.TAPE, "") not in ("", "0")

    @property
    def why_not_live(self) -> str:
        """Why nothing may run live in this process, and the remedy; "" if runs may be live."""
        if self.strict:
            return _NOT_LIVE.format(f"{self.STRICT}=1")
        replays = self.replays or os.environ.get(self.RERUN) == self.REPLAY
        return _NOT_LIVE.format(f"{self.RERUN}={self.REPLAY}") if replays else ""

    def check_address(self, url: str) -> None:
        """Raise UsageError if nothing runs live and this process does not serve `url`."""
        if not (why := self.why_not_live):
            return
        parts = urlsplit(url)
        served = (parts.port or _PORTS.get(parts.scheme, 0)) in self.served_ports
        if not served or parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise UsageError(f"{parts.hostname or url} is not asked. {why}")

    @staticmethod
    def make_secret() -> str:
        """Return a secret for a new process."""
        return os.urandom(SIZE).hex()

    def proves(self, claim: Any) -> bool:
        """Return whether `claim` is the secret of this process, which may have none."""
        if not self._secret or not isinstance(claim, str):
            return False
        return hmac.compare_digest(claim.encode("utf-8", "replace"), self._secret)


LAUNCH = Launch(os.environ)


def read_launch() -> Launch:
    """Return how this process was started."""
    return LAUNCH
