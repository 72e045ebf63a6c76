"""Runs of other systems and processes: watched, imported, attached to."""
