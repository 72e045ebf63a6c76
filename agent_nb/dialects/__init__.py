"""Dialects: how a model writes a turn; one file each, see `base`.

Order: base, calls, fences, recursion, render
< grammar, markers
< examples, native
< section_reader, thinking, xml_reader
< section, xml
"""
