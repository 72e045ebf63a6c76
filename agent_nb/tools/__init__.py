"""What an agent can do: `decorator` makes tools of functions, `toolset` collects them, `runner`
runs them, `approval` asks first.

`base` is the contract of the room; a file that offers `tools` is a plug-in with built-in tools.
"""
