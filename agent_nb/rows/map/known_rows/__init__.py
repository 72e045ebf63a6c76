"""Rows that are known, from a store or the log of a map: read, written, replayed, forgotten."""
