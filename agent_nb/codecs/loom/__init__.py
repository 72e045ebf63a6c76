"""Loom's frames: sessions of many node runs (seed 002)."""

from .codec import codec as codec
