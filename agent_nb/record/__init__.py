"""Runs as JSON in notebooks: writing, signing, finding, comparing and journals.

Order: agent_cells, clock, durations, figure_data, file_lock, ipynb, normalize, packing, row_link,
  sides, ssh_signature
< displays, fingerprint, folders, journal, packed_events, pictures, row_file, signers, size_limit
< given, journal_recovery, masks, record, row_claims
< inner_records, payloads, schema, split_merge
< nbdime_conflicts, recorded_calls, signing
< countersign, diff, match, ranking, row_records, verify
< metadata, row_carry
< outputs, row_store
< find, forgotten
< notebook_file
"""
