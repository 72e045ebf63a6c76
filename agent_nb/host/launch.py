"""What the process that started this one vouches for: which requests come from it, and whether
anything may run live here.

Why the environment: a front end copies a stranger's cell metadata into its requests, so nothing in
a request proves its sender. Only the starter of a kernel can put a secret into the environment of
exactly that kernel.

Rules
- The environment is read when the package is imported, before any cell runs and however the package
  is used (magics, `await agent(…)`). The secret is removed from `os.environ`: child processes never
  see it.
- A secret of the wrong size proves nothing; it is compared in constant time, and only here.
- `STRICT` and `RERUN=replay` are latched: whatever a notebook does to the environment later,
  nothing runs live.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import MutableMapping
from typing import Any

SIZE = 32  # bytes of the secret


class Launch:
    """How one process was started.

    `strict`: recorded runs are replayed or fail. `replays`: replay is the default of cells.
    """

    PROOF = "AGENT_NB_PROOF"  # variable with the secret, in hexadecimal digits
    STRICT = "AGENT_NB_STRICT"
    RERUN = "AGENT_NB_RERUN"  # the default mode of cells, for plain nbclient, papermill, nbmake
    REPLAY = "replay"

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        secret = environment.pop(self.PROOF, "").encode("utf-8", "replace")
        self._secret = secret if len(secret) == 2 * SIZE else b""
        self.strict = environment.get(self.STRICT, "") not in ("", "0")
        self.replays = environment.get(self.RERUN) == self.REPLAY

    @staticmethod
    def make_secret() -> str:
        """Return a secret for a new process."""
        return os.urandom(SIZE).hex()

    def proves(self, claim: Any) -> bool:
        """Return whether `claim` is the secret of this process."""
        return (
            bool(self._secret)
            and isinstance(claim, str)
            and hmac.compare_digest(claim.encode("utf-8", "replace"), self._secret)
        )


LAUNCH = Launch(os.environ)


def read_launch() -> Launch:
    """Return how this process was started."""
    return LAUNCH
