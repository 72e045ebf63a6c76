"""Looopy's events over SSE (seed 004)."""

from .codec import codec as codec
