"""Runs of other systems: watched, imported, attached to."""
