"""Runs of other systems, followed in a cell."""
