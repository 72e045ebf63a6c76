"""AG-UI 1.0: what CopilotKit and others show."""

from .read import codec as codec
