"""Bytes and text without meaning: framing, redaction, JSON. Pure: feed() and close(), no I/O.

Order: compression, console, exif, gif, hidden_characters, key_forms, lines, picture_size,
  plain_values, scanner, sse, surrogates, tags, text_limits, unpicklable
< jpeg, json_text, key_search, webp
< media, redact
"""
