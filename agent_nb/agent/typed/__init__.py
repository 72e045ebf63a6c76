"""Typed answers: their schema, how a request asks for one, their check, and their value.

Code that goes on with an answer needs fields of known types, whichever model wrote it.

`output_type` is the type (schema: `type_adapter`), `output_way` asks, `answer_check` checks,
`typed_answer` reads the value.
"""
