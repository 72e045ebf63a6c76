"""Typed answers: their schema, how a request asks for one, their check, and their value.

Why: code that goes on with an answer needs fields of known types, whichever model wrote it.

`output_type` is the type, `output_way` asks, `answer_check` checks, `typed_answer` reads the value.
"""
