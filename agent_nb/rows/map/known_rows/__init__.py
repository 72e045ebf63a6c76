"""Rows with a result from an earlier map, in a store or a log: found, replayed, forgotten."""
