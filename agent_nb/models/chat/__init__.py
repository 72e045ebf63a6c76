"""The API of chat completions, which most servers speak: requests encoded, answers decoded.

Why a folder: several providers share it, and none of its files sends anything.
"""
