"""Runs as JSON in notebooks: writing, signing, finding, comparing and journals.

Order: agent_cells, durations, figure_data, file_lock, ipynb, normalize, packing, sides,
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
