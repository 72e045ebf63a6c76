"""The options that our runner sends with a cell, in the metadata of its request to the kernel.

Why one file: the runner writes them in one process, the kernel reads them in another.

Rule: JupyterLab copies a cell's metadata into its request, so a stranger's notebook may set it: an
option counts only with the proof that our runner sent it (`host.launch`), except the values in
`UNPROVED`, which only restrict a cell. Any value may have another type than declared here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from ..host import read_launch
from ..record import Record

KEY = "agent_nb"  # of the metadata of a request
PROOF = "proof"  # the secret of the kernel that receives the request


class RunnerOptions(TypedDict, total=False):
    """The options of a cell.

    rerun, model, trust: as on the command line. notebook: the path of the file.
    headless: no user watches. unshown: the outputs are dropped, so nothing needs to be drawn.
    replies: the runner reads the numbers of a run in the reply (`publish.reply_numbers`).
    stream: the path of a file for the events.
    normalize: the masks of the notebook's project, which hide what may differ from run to run.
    allowed_hosts: those that its project lets a test ask (`cell.refusing`).
    runs: the records of the cell. signed: the hashes of those that a signer has signed.
    """

    rerun: str
    model: str
    trust: bool
    notebook: str
    headless: bool
    unshown: bool
    replies: bool
    stream: str
    normalize: list[Any]
    allowed_hosts: Sequence[str]
    runs: Sequence[Record]
    signed: Sequence[str]


NO_OPTIONS: RunnerOptions = {}
# the options and values that count without the proof
UNPROVED: Mapping[str, Any] = {"rerun": "replay", "headless": True}


def write_options(options: RunnerOptions, proof: str) -> dict[str, Any]:
    """Return the metadata of a request to the kernel whose secret is `proof`."""
    return {KEY: {**options, PROOF: proof}}


def read_options(metadata: Mapping[str, Any]) -> RunnerOptions:
    """Return the options that count in the metadata of a request (see the rules above)."""
    sent = metadata.get(KEY)
    if not isinstance(sent, dict):
        return NO_OPTIONS
    if read_launch().proves(sent.get(PROOF)):
        counting = {name: value for name, value in sent.items() if name != PROOF}
    else:
        counting = {  # the types are compared too: in Python 1 equals True
            n: v for n, v in UNPROVED.items() if type(sent.get(n)) is type(v) and sent[n] == v
        }
    return cast("RunnerOptions", counting)
