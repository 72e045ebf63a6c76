"""The options of one execution of a notebook, for its kernel and its cells.

Why apart from `client`: the command line reads them before nbclient, which is slow to import.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # neither is needed before the kernel starts
    from ..agent import Rule
    from ..record import Signer


class ExecutionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one execution."""

    #: Overrides the model of every cell.
    model: str = ""
    #: live, replay or auto ("": as the cells say).
    rerun: str = ""
    #: Code of records that this user has not signed may run again.
    trust: bool = False
    #: The folder may give keys, and its policies may allow calls.
    trust_folder: bool = False
    #: The MCP servers of the folder may start.
    trust_mcp: bool = False
    #: Seconds per cell; None is unlimited.
    timeout: float | None = None
    #: A kernel other than the notebook's.
    kernel: str = ""
    #: A file to which the runs append their events.
    stream: str = ""
    #: Nothing runs live, whatever the cells say, and no cards are drawn.
    strict: bool = False
    #: Patterns that a strict replay does not compare.
    normalize: Sequence[Rule] = ()
    #: Hosts that a strict replay may ask, although it would refuse them.
    allowed_hosts: Sequence[str] = ()
    #: The tape is on from the first cell, even if the notebook neither starts it nor needs it.
    tape: bool = False
    #: The time zone of the kernel ("": that of this machine).
    zone: str = ""
    #: Signers: calls of records that they have signed may run again.
    signers: Sequence[Signer] = ()


EXECUTION_DEFAULTS = ExecutionOptions()
