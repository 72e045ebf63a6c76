"""Typed answers: their schema, how a request asks for one, their check, and their value."""
