"""AgentEvent over SSE (seed 003)."""

from .codec import codec as codec
