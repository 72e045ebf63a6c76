"""Typed answers: their schema, how a request asks for one, their check, and their value.

`output_type` is the type, `output_way` asks, `answer_check` checks, `typed_answer` reads the value.
"""
