"""The event stream of Cogency (seed 000 and 001)."""

from .read import codec as codec
