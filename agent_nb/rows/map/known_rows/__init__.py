"""Rows with a result from an earlier map, in a store or a log: found, replayed, forgotten.

An answer that was paid for is not asked for again.
"""
