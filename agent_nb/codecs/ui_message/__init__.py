"""The UI message stream of the Vercel AI SDK 6."""

from .read import codec as codec
