"""Runs as JSON in notebooks: how they are written, signed, found and compared.

Why in the notebook: a reader who gets the file gets its runs, and can replay them without a model.

Read `record` first: what a notebook keeps of a run. `journal` holds a run in progress,
`fingerprint` and `match` find the record of a cell, `notebook_file` keeps records with their
cells, `signing` says who made a record and `countersign` who approved it, `inner_records` reads
the records inside a record, `recorded_calls` lists the calls that a record can run again.

Order of imports, lowest level first: agent_cells, figure_data, file_lock, ipynb, normalize,
  packing, side_by_side, ssh_signature
< displays, journal, packed_events, signers, size_limit
< journal_recovery, pictures, record
< fingerprint, inner_records, nbdime_conflicts, signing
< match, ranking, recorded_calls, run_inputs, verify
< countersign, split_merge
< metadata
< outputs
< forgotten, output_widgets, used_calls
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
    from .recorded_calls import LogCalls as LogCalls
    from .recorded_calls import RecordedCall as RecordedCall
    from .run_inputs import RunInputs as RunInputs
    from .side_by_side import SideBySide as SideBySide
    from .signers import Signer as Signer
    from .signing import UserKey as UserKey
    from .signing import covers_record as covers_record
    from .signing import is_intact as is_intact
    from .ssh_signature import PrivateKey as PrivateKey
    from .used_calls import UsedCalls as UsedCalls
    from .verify import check_record as check_record

# file of the room -> the names that it defines
_NAMES = {
    "agent_cells": "agent_cell content_hash source_hash",
    "countersign": "Signatures",
    "displays": "DisplayPair",
    "figure_data": "ArtistData FigureData Numbers",
    "file_lock": "is_locked take_lock",
    "fingerprint": "Digests",
    "inner_records": "InnerRecords",
    "ipynb": (
        "Cell NOTEBOOK_SUFFIX Notebook Output cell_id find_notebooks list_cells list_outputs "
        "load_notebook metadata_of numbered_id read_notebook save_notebook source_of with_ids"
    ),
    "journal": "Journal",
    "journal_recovery": "RecoverableRun",
    "match": "Match",
    "metadata": "Runs",
    "normalize": "normalize_value",
    "notebook_file": "NotebookRuns",
    "outputs": "RunNumbers",
    "packed_events": "PackedExchange",
    "packing": "Home Packer Payloads Unpacker digest_value",
    "pictures": "PictureComparison",
    "ranking": "CellRecords read_start_time",
    "record": "METADATA_KEY Provenance RECORD_MIME Record events_of log_of run_record",
    "recorded_calls": "LogCalls RecordedCall",
    "run_inputs": "RunInputs",
    "side_by_side": "SideBySide",
    "signers": "Signer",
    "signing": "UserKey covers_record is_intact",
    "ssh_signature": "PrivateKey",
    "used_calls": "UsedCalls",
    "verify": "check_record",
}

__getattr__, __dir__ = open_door(__name__, _NAMES)
