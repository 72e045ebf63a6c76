"""Runs as JSON in notebooks: writing, signing, finding, comparing and journals.

Read `record` first: what a notebook keeps of a run. `journal` holds a run while it goes on,
`match` finds the record of a cell, `diff` and `fingerprint` compare, `signing` and `verify` say who
made it, `inner_records` finds the records inside a record.

Order: agent_cells, figure_data, file_lock, ipynb, normalize, packing, sides, ssh_signature
< displays, journal, packed_events, pictures, signers, size_limit
< journal_recovery, record
< fingerprint, inner_records, nbdime_conflicts, signing, split_merge
< match, ranking, recorded_calls, run_inputs, verify
< countersign, diff
< metadata
< outputs
< find, forgotten
< notebook_file
"""

from typing import TYPE_CHECKING

from ..host.door import open_door

if TYPE_CHECKING:
    from .agent_cells import AGENT_CELL as AGENT_CELL
    from .agent_cells import agent_cell as agent_cell
    from .agent_cells import content_hash as content_hash
    from .agent_cells import source_hash as source_hash
    from .countersign import SIGNATURES as SIGNATURES
    from .countersign import add_signature as add_signature
    from .countersign import describe_signatures as describe_signatures
    from .countersign import merge_signatures as merge_signatures
    from .countersign import signers_of as signers_of
    from .diff import Diff as Diff
    from .diff import compare_runs as compare_runs
    from .diff import list_comparable_parts as list_comparable_parts
    from .displays import compare_displays as compare_displays
    from .displays import kind_name as kind_name
    from .displays import list_uncompared_kinds as list_uncompared_kinds
    from .figure_data import ArtistData as ArtistData
    from .figure_data import FigureData as FigureData
    from .figure_data import Numbers as Numbers
    from .file_lock import is_locked as is_locked
    from .file_lock import take_lock as take_lock
    from .find import find_notebooks as find_notebooks
    from .find import find_records as find_records
    from .find import read_notebook as read_notebook
    from .fingerprint import Digests as Digests
    from .forgotten import FORGET as FORGET
    from .inner_records import InnerRecords as InnerRecords
    from .ipynb import NOTEBOOK_SUFFIX as NOTEBOOK_SUFFIX
    from .ipynb import Cell as Cell
    from .ipynb import Notebook as Notebook
    from .ipynb import Output as Output
    from .ipynb import all_outputs as all_outputs
    from .ipynb import cell_id as cell_id
    from .ipynb import encode_json as encode_json
    from .ipynb import list_cells as list_cells
    from .ipynb import list_outputs as list_outputs
    from .ipynb import load_notebook as load_notebook
    from .ipynb import metadata_of as metadata_of
    from .ipynb import numbered_id as numbered_id
    from .ipynb import read_file_json as read_file_json
    from .ipynb import save_notebook as save_notebook
    from .ipynb import source_of as source_of
    from .ipynb import tags_of as tags_of
    from .ipynb import with_ids as with_ids
    from .journal import Journal as Journal
    from .journal_recovery import RecoverableRun as RecoverableRun
    from .match import Match as Match
    from .metadata import FORGOTTEN as FORGOTTEN
    from .metadata import Runs as Runs
    from .metadata import has_newer_format as has_newer_format
    from .normalize import normalize_value as normalize_value
    from .notebook_file import drop_unbegun as drop_unbegun
    from .notebook_file import find_cleared_cells as find_cleared_cells
    from .notebook_file import group_records as group_records
    from .notebook_file import lift_records as lift_records
    from .notebook_file import replace_runs as replace_runs
    from .notebook_file import strip_records as strip_records
    from .outputs import RunNumbers as RunNumbers
    from .outputs import list_run_numbers as list_run_numbers
    from .outputs import numbers_of as numbers_of
    from .outputs import read_published_record as read_published_record
    from .outputs import remove_widgets as remove_widgets
    from .packing import Home as Home
    from .packing import Payloads as Payloads
    from .packing import digest_value as digest_value
    from .pictures import PictureComparison as PictureComparison
    from .ranking import CellRecords as CellRecords
    from .ranking import read_start_time as read_start_time
    from .record import BUTTON_KEY as BUTTON_KEY
    from .record import LIVE_KEY as LIVE_KEY
    from .record import METADATA_KEY as METADATA_KEY
    from .record import METADATA_VERSION as METADATA_VERSION
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
    from .split_merge import reassign_runs as reassign_runs
    from .ssh_signature import PrivateKey as PrivateKey
    from .verify import check_record as check_record
    from .verify import secrets_in as secrets_in

_HOMES = {
    "AGENT_CELL": "agent_cells",
    "ArtistData": "figure_data",
    "BUTTON_KEY": "record",
    "Cell": "ipynb",
    "CellRecords": "ranking",
    "Diff": "diff",
    "Digests": "fingerprint",
    "FORGET": "forgotten",
    "FORGOTTEN": "metadata",
    "FigureData": "figure_data",
    "Home": "packing",
    "InnerRecords": "inner_records",
    "Journal": "journal",
    "LIVE_KEY": "record",
    "LogCalls": "recorded_calls",
    "METADATA_KEY": "record",
    "METADATA_VERSION": "record",
    "Match": "match",
    "NOTEBOOK_SUFFIX": "ipynb",
    "Notebook": "ipynb",
    "Numbers": "figure_data",
    "Output": "ipynb",
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
    "SIGNATURES": "countersign",
    "SideBySide": "sides",
    "Signer": "signers",
    "add_signature": "countersign",
    "agent_cell": "agent_cells",
    "all_outputs": "ipynb",
    "cell_id": "ipynb",
    "check_record": "verify",
    "compare_displays": "displays",
    "compare_runs": "diff",
    "content_hash": "agent_cells",
    "covers_record": "signing",
    "describe_signatures": "countersign",
    "digest_value": "packing",
    "drop_unbegun": "notebook_file",
    "encode_json": "ipynb",
    "events_of": "record",
    "find_cleared_cells": "notebook_file",
    "find_notebooks": "find",
    "find_records": "find",
    "group_records": "notebook_file",
    "has_newer_format": "metadata",
    "is_intact": "signing",
    "is_locked": "file_lock",
    "is_own_record": "signing",
    "key_problem": "signing",
    "kind_name": "displays",
    "lift_records": "notebook_file",
    "list_cells": "ipynb",
    "list_comparable_parts": "diff",
    "list_outputs": "ipynb",
    "list_run_numbers": "outputs",
    "list_uncompared_kinds": "displays",
    "load_notebook": "ipynb",
    "log_of": "record",
    "merge_signatures": "countersign",
    "metadata_of": "ipynb",
    "names_signer": "signing",
    "normalize_value": "normalize",
    "numbered_id": "ipynb",
    "numbers_of": "outputs",
    "read_file_json": "ipynb",
    "read_notebook": "find",
    "read_published_record": "outputs",
    "read_start_time": "ranking",
    "reassign_runs": "split_merge",
    "remove_widgets": "outputs",
    "replace_runs": "notebook_file",
    "run_record": "record",
    "save_notebook": "ipynb",
    "secrets_in": "verify",
    "sign_record": "signing",
    "signed_by": "signing",
    "signers_of": "countersign",
    "source_hash": "agent_cells",
    "source_of": "ipynb",
    "status_of": "record",
    "strip_records": "notebook_file",
    "tags_of": "ipynb",
    "take_lock": "file_lock",
    "user_key": "signing",
    "with_ids": "ipynb",
}

__getattr__, __dir__ = open_door(__name__, _HOMES)
