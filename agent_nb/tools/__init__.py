"""Tools: `decorator` makes them of functions, `toolset` collects, `runner` runs, `approval` asks.

`base` is the contract of the room; a file that defines `tools` is a plug-in with built-in tools.
"""
