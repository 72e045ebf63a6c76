"""Runs of other systems, followed in a cell and recorded as imported. Read `base` first."""
