"""Bytes and text without meaning: framing, redaction, JSON. Pure: feed() and close(), no I/O."""
