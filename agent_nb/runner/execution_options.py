"""The options of one execution of a notebook, for its kernel and its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # neither is needed before the kernel starts
    from ..agent import Rule
    from ..record import Signer


class ExecutionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of one execution."""

    model: str = ""  # overrides the model of every cell
    rerun: str = ""  # live, replay or auto ("": as the cells say)
    trust: bool = False  # code of records that this user has not signed may run again
    trust_folder: bool = False  # the folder may give keys, and its policies may allow calls
    trust_mcp: bool = False  # the MCP servers of the folder may start
    timeout: float | None = None  # seconds per cell; None is unlimited
    kernel: str = ""  # a kernel other than the notebook's
    stream: str = ""  # a file to which the runs append their events
    strict: bool = False  # nothing runs live, whatever the cells say, and no cards are drawn
    normalize: Sequence[Rule] = ()  # patterns that a strict replay does not compare
    allowed_hosts: Sequence[str] = ()  # hosts that a strict replay does not refuse
    tape: bool = False  # the tape is on from the first cell, whatever the notebook says
    zone: str = ""  # the time zone of the kernel ("": that of this machine)
    signers: Sequence[Signer] = ()  # calls of records that they have signed may run again


EXECUTION_DEFAULTS = ExecutionOptions()
