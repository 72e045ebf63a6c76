"""Framing of bytes and text: lines, server-sent events, markers across chunks. Pure cores with
feed() and close(), no I/O.
"""
