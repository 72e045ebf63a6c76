"""Runs as JSON in notebooks: how they are written, signed, found and compared.

Read `record` first: what a notebook keeps of a run. `journal` holds a run in progress,
`fingerprint` and `match` find the record of a cell, `notebook_file` keeps records with their
cells, `signing` says who made a record and `countersign` who approved it, `inner_records` reads
the records inside a record, `recorded_calls` lists the calls that a record can run again.

Order: agent_cells, figure_data, file_lock, ipynb, normalize, packing, sides, ssh_signature
< displays, journal, packed_events, signers, size_limit
< journal_recovery, pictures, record
< fingerprint, inner_records, nbdime_conflicts, signing, split_merge
< match, ranking, recorded_calls, run_inputs, verify
< countersign
< metadata
< outputs
< forgotten, used_calls
< notebook_file
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .agent_cells import agent_cell as agent_cell
    from .agent_cells import content_hash as content_hash
    from .agent_cells import source_hash as source_hash
    from .countersign import Signatures as Signatures
    from .displays import DisplayPair as DisplayPair
    from .figure_data import ArtistData as ArtistData
    from .figure_data import FigureData as FigureData
    from .figure_data import Numbers as Numbers
    from .file_lock import is_locked as is_locked
    from .file_lock import take_lock as take_lock
    from .fingerprint import Digests as Digests
    from .inner_records import InnerRecords as InnerRecords
    from .ipynb import NOTEBOOK_SUFFIX as NOTEBOOK_SUFFIX
    from .ipynb import Cell as Cell
    from .ipynb import Notebook as Notebook
    from .ipynb import Output as Output
    from .ipynb import cell_id as cell_id
    from .ipynb import find_notebooks as find_notebooks
    from .ipynb import list_cells as list_cells
    from .ipynb import list_outputs as list_outputs
    from .ipynb import load_notebook as load_notebook
    from .ipynb import metadata_of as metadata_of
    from .ipynb import numbered_id as numbered_id
    from .ipynb import read_notebook as read_notebook
    from .ipynb import save_notebook as save_notebook
    from .ipynb import source_of as source_of
    from .ipynb import with_ids as with_ids
    from .journal import Journal as Journal
    from .journal_recovery import RecoverableRun as RecoverableRun
    from .match import Match as Match
    from .metadata import Runs as Runs
    from .normalize import normalize_value as normalize_value
    from .notebook_file import NotebookRuns as NotebookRuns
    from .outputs import RunNumbers as RunNumbers
    from .packed_events import PackedExchange as PackedExchange
    from .packing import Home as Home
    from .packing import Packer as Packer
    from .packing import Payloads as Payloads
    from .packing import Unpacker as Unpacker
    from .packing import digest_value as digest_value
    from .pictures import PictureComparison as PictureComparison
    from .ranking import CellRecords as CellRecords
    from .ranking import read_start_time as read_start_time
    from .record import METADATA_KEY as METADATA_KEY
    from .record import RECORD_MIME as RECORD_MIME
    from .record import Provenance as Provenance
    from .record import Record as Record
    from .record import events_of as events_of
    from .record import log_of as log_of
    from .record import run_record as run_record
    from .record import status_of as status_of
    from .recorded_calls import LogCalls as LogCalls
    from .recorded_calls import RecordedCall as RecordedCall
    from .run_inputs import RunInputs as RunInputs
    from .sides import SideBySide as SideBySide
    from .signers import Signer as Signer
    from .signing import covers_record as covers_record
    from .signing import is_intact as is_intact
    from .signing import is_own_record as is_own_record
    from .signing import key_problem as key_problem
    from .signing import names_signer as names_signer
    from .signing import sign_record as sign_record
    from .signing import signed_by as signed_by
    from .signing import user_key as user_key
    from .ssh_signature import PrivateKey as PrivateKey
    from .used_calls import UsedCalls as UsedCalls
    from .verify import check_record as check_record

_HOMES = {
    "ArtistData": "figure_data",
    "Cell": "ipynb",
    "CellRecords": "ranking",
    "Digests": "fingerprint",
    "DisplayPair": "displays",
    "FigureData": "figure_data",
    "Home": "packing",
    "InnerRecords": "inner_records",
    "Journal": "journal",
    "LogCalls": "recorded_calls",
    "METADATA_KEY": "record",
    "Match": "match",
    "NOTEBOOK_SUFFIX": "ipynb",
    "Notebook": "ipynb",
    "NotebookRuns": "notebook_file",
    "Numbers": "figure_data",
    "Output": "ipynb",
    "PackedExchange": "packed_events",
    "Packer": "packing",
    "Payloads": "packing",
    "PictureComparison": "pictures",
    "PrivateKey": "ssh_signature",
    "Provenance": "record",
    "RECORD_MIME": "record",
    "Record": "record",
    "RecordedCall": "recorded_calls",
    "RecoverableRun": "journal_recovery",
    "RunInputs": "run_inputs",
    "RunNumbers": "outputs",
    "Runs": "metadata",
    "SideBySide": "sides",
    "Signatures": "countersign",
    "Signer": "signers",
    "Unpacker": "packing",
    "UsedCalls": "used_calls",
    "agent_cell": "agent_cells",
    "cell_id": "ipynb",
    "check_record": "verify",
    "content_hash": "agent_cells",
    "covers_record": "signing",
    "digest_value": "packing",
    "events_of": "record",
    "find_notebooks": "ipynb",
    "is_intact": "signing",
    "is_locked": "file_lock",
    "is_own_record": "signing",
    "key_problem": "signing",
    "list_cells": "ipynb",
    "list_outputs": "ipynb",
    "load_notebook": "ipynb",
    "log_of": "record",
    "metadata_of": "ipynb",
    "names_signer": "signing",
    "normalize_value": "normalize",
    "numbered_id": "ipynb",
    "read_notebook": "ipynb",
    "read_start_time": "ranking",
    "run_record": "record",
    "save_notebook": "ipynb",
    "sign_record": "signing",
    "signed_by": "signing",
    "source_hash": "agent_cells",
    "source_of": "ipynb",
    "status_of": "record",
    "take_lock": "file_lock",
    "user_key": "signing",
    "with_ids": "ipynb",
}

__getattr__, __dir__ = open_door(__name__, _HOMES)
