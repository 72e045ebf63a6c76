"""The API of chat completions, which most servers speak: requests encoded, answers decoded.

Several providers share it, and none of its files sends anything.
"""
