"""The client: `attach` follows a run of a server of ours, `read` any stream over HTTP. The only
place beside `models.http` with httpx.
"""

from __future__ import annotations

from ...external.attach import Attached, attach
from ...external.connect import Backoff, Target, target
from ...external.http_stream import read

__all__ = ["Attached", "Backoff", "Target", "attach", "read", "target"]
