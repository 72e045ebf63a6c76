"""The client: `attach` follows a run of a server of ours, `read` any stream over HTTP. The only
place beside `models.http` with httpx.
"""

from __future__ import annotations

from .attached import Attached, attach
from .connect import Backoff, Target, target
from .reader import read

__all__ = ["Attached", "Backoff", "Target", "attach", "read", "target"]
