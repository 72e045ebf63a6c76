"""What an agent can do: `decorator` makes tools of functions, `toolset` collects them, `runner` runs them, `approval` asks first.

`base` is the contract of the room; a file that is no machinery (see `plugins.MACHINERY`) offers built-in tools as `tools`.
"""
