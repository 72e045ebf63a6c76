"""Dialects: how a model writes a turn; one file each, see `base`.

Order: base, calls, fences, recursion, render
< call_assembly, grammar, markers
< examples, native, section_reader, xml_reader
< text_dialect, thinking
< section, xml
"""
