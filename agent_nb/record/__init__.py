"""Runs as JSON in notebooks: writing, signing, finding, comparing and journals.

Read `record` first: what a notebook keeps of a run. `journal` holds a run while it goes on,
`match` finds the record of a cell, `diff` and `fingerprint` compare, `signing` and `verify` say who
made it, `inner_records` finds the records inside a record.

Order: agent_cells, figure_data, file_lock, ipynb, normalize, packing, sides,
  ssh_signature
< displays, fingerprint, journal, packed_events, pictures, signers, size_limit
< journal_recovery, record, run_inputs
< inner_records, payloads, split_merge
< nbdime_conflicts, recorded_calls, signing
< countersign, diff, match, ranking, verify
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
    from .figure_data import FIGURE_KEY as FIGURE_KEY
    from .figure_data import GRID as GRID
    from .figure_data import ArtistData as ArtistData
    from .figure_data import FigureData as FigureData
    from .figure_data import Numbers as Numbers
    from .figure_data import SameText as SameText
    from .figure_data import read_figure_data as read_figure_data
    from .file_lock import is_locked as is_locked
    from .file_lock import take_lock as take_lock
    from .find import find_notebooks as find_notebooks
    from .find import find_records as find_records
    from .find import read_notebook as read_notebook
    from .fingerprint import find_changed_inputs as find_changed_inputs
    from .fingerprint import inputs_hash as inputs_hash
    from .fingerprint import prompt_digest as prompt_digest
    from .fingerprint import recorded_inputs as recorded_inputs
    from .forgotten import FORGET as FORGET
    from .inner_records import ROWS_KIND as ROWS_KIND
    from .inner_records import UNFOLDED as UNFOLDED
    from .inner_records import read_inner_records as read_inner_records
    from .inner_records import stored_events as stored_events
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
    from .journal_recovery import read_stored_events as read_stored_events
    from .journal_recovery import recover_log as recover_log
    from .match import TAMPERED as TAMPERED
    from .match import Match as Match
    from .match import match_record as match_record
    from .match import select_cell_records as select_cell_records
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
    from .packing import SIGN as SIGN
    from .packing import Home as Home
    from .packing import Payloads as Payloads
    from .packing import digest_value as digest_value
    from .packing import find_payload_keys as find_payload_keys
    from .payloads import attach_payloads as attach_payloads
    from .payloads import detach_payloads as detach_payloads
    from .pictures import PICTURE_TYPES as PICTURE_TYPES
    from .pictures import Comparison as Comparison
    from .pictures import Picture as Picture
    from .pictures import compare_all_pictures as compare_all_pictures
    from .pictures import compare_pictures as compare_pictures
    from .ranking import EXECUTIONS_OF_CELL as EXECUTIONS_OF_CELL
    from .ranking import rank_records as rank_records
    from .ranking import read_execution_id as read_execution_id
    from .ranking import read_start_time as read_start_time
    from .ranking import select_newest_execution as select_newest_execution
    from .ranking import select_records as select_records
    from .ranking import sort_newest_first as sort_newest_first
    from .ranking import sort_oldest_first as sort_oldest_first
    from .record import BUTTON_KEY as BUTTON_KEY
    from .record import LIVE_KEY as LIVE_KEY
    from .record import METADATA_KEY as METADATA_KEY
    from .record import METADATA_VERSION as METADATA_VERSION
    from .record import NO_CONVERSATION as NO_CONVERSATION
    from .record import RECORD_MIME as RECORD_MIME
    from .record import Provenance as Provenance
    from .record import Record as Record
    from .record import events_of as events_of
    from .record import log_of as log_of
    from .record import run_record as run_record
    from .record import status_of as status_of
    from .recorded_calls import LogCalls as LogCalls
    from .recorded_calls import RecordedCall as RecordedCall
    from .recorded_calls import count_equal as count_equal
    from .recorded_calls import digest_calls as digest_calls
    from .recorded_calls import list_calls as list_calls
    from .recorded_calls import list_log_calls as list_log_calls
    from .recorded_calls import read_logs as read_logs
    from .run_inputs import RunInputs as RunInputs
    from .run_inputs import diff_texts as diff_texts
    from .sides import CHANGED as CHANGED
    from .sides import align_lines as align_lines
    from .sides import format_sides as format_sides
    from .signers import Signer as Signer
    from .signers import add_signer as add_signer
    from .signers import load_signers as load_signers
    from .signers import remove_signers as remove_signers
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
    from .ssh_signature import fingerprint_key as fingerprint_key
    from .verify import check_record as check_record
    from .verify import secrets_in as secrets_in

_HOMES = {
    "select_newest_execution": "ranking",
    "LogCalls": "recorded_calls",
    "read_stored_events": "journal_recovery",
    "AGENT_CELL": "agent_cells",
    "ArtistData": "figure_data",
    "BUTTON_KEY": "record",
    "CHANGED": "sides",
    "Cell": "ipynb",
    "Comparison": "pictures",
    "Diff": "diff",
    "EXECUTIONS_OF_CELL": "ranking",
    "FIGURE_KEY": "figure_data",
    "FORGET": "forgotten",
    "FORGOTTEN": "metadata",
    "FigureData": "figure_data",
    "GRID": "figure_data",
    "Home": "packing",
    "Journal": "journal",
    "LIVE_KEY": "record",
    "METADATA_KEY": "record",
    "METADATA_VERSION": "record",
    "Match": "match",
    "NOTEBOOK_SUFFIX": "ipynb",
    "NO_CONVERSATION": "record",
    "Notebook": "ipynb",
    "Numbers": "figure_data",
    "Output": "ipynb",
    "PICTURE_TYPES": "pictures",
    "Payloads": "packing",
    "Picture": "pictures",
    "PrivateKey": "ssh_signature",
    "Provenance": "record",
    "RECORD_MIME": "record",
    "ROWS_KIND": "inner_records",
    "Record": "record",
    "RecordedCall": "recorded_calls",
    "RecoverableRun": "journal_recovery",
    "RunInputs": "run_inputs",
    "RunNumbers": "outputs",
    "Runs": "metadata",
    "SIGN": "packing",
    "SIGNATURES": "countersign",
    "SameText": "figure_data",
    "Signer": "signers",
    "TAMPERED": "match",
    "UNFOLDED": "inner_records",
    "add_signature": "countersign",
    "add_signer": "signers",
    "agent_cell": "agent_cells",
    "align_lines": "sides",
    "all_outputs": "ipynb",
    "attach_payloads": "payloads",
    "cell_id": "ipynb",
    "check_record": "verify",
    "compare_all_pictures": "pictures",
    "compare_displays": "displays",
    "compare_pictures": "pictures",
    "compare_runs": "diff",
    "content_hash": "agent_cells",
    "count_equal": "recorded_calls",
    "covers_record": "signing",
    "describe_signatures": "countersign",
    "detach_payloads": "payloads",
    "diff_texts": "run_inputs",
    "digest_calls": "recorded_calls",
    "digest_value": "packing",
    "drop_unbegun": "notebook_file",
    "encode_json": "ipynb",
    "events_of": "record",
    "find_changed_inputs": "fingerprint",
    "find_cleared_cells": "notebook_file",
    "find_notebooks": "find",
    "find_payload_keys": "packing",
    "find_records": "find",
    "fingerprint_key": "ssh_signature",
    "format_sides": "sides",
    "group_records": "notebook_file",
    "has_newer_format": "metadata",
    "inputs_hash": "fingerprint",
    "is_intact": "signing",
    "is_locked": "file_lock",
    "is_own_record": "signing",
    "key_problem": "signing",
    "kind_name": "displays",
    "lift_records": "notebook_file",
    "list_calls": "recorded_calls",
    "list_cells": "ipynb",
    "list_comparable_parts": "diff",
    "list_log_calls": "recorded_calls",
    "list_outputs": "ipynb",
    "list_run_numbers": "outputs",
    "list_uncompared_kinds": "displays",
    "load_notebook": "ipynb",
    "load_signers": "signers",
    "log_of": "record",
    "match_record": "match",
    "merge_signatures": "countersign",
    "metadata_of": "ipynb",
    "names_signer": "signing",
    "normalize_value": "normalize",
    "numbered_id": "ipynb",
    "numbers_of": "outputs",
    "prompt_digest": "fingerprint",
    "rank_records": "ranking",
    "read_execution_id": "ranking",
    "read_figure_data": "figure_data",
    "read_file_json": "ipynb",
    "read_inner_records": "inner_records",
    "read_logs": "recorded_calls",
    "read_notebook": "find",
    "read_published_record": "outputs",
    "read_start_time": "ranking",
    "reassign_runs": "split_merge",
    "recorded_inputs": "fingerprint",
    "recover_log": "journal_recovery",
    "remove_signers": "signers",
    "remove_widgets": "outputs",
    "replace_runs": "notebook_file",
    "run_record": "record",
    "save_notebook": "ipynb",
    "secrets_in": "verify",
    "select_cell_records": "match",
    "select_records": "ranking",
    "sign_record": "signing",
    "signed_by": "signing",
    "signers_of": "countersign",
    "sort_newest_first": "ranking",
    "sort_oldest_first": "ranking",
    "source_hash": "agent_cells",
    "source_of": "ipynb",
    "status_of": "record",
    "stored_events": "inner_records",
    "strip_records": "notebook_file",
    "tags_of": "ipynb",
    "take_lock": "file_lock",
    "user_key": "signing",
    "with_ids": "ipynb",
}

__getattr__, __dir__ = open_door(__name__, _HOMES)
