"""Runs of other systems and processes: watched, imported, attached to.

Order: follow, followed, importer, tokens
< connect
< http_stream, remote_control, remote_run
< attach, sources
< watch
"""
