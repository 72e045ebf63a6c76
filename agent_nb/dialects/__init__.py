"""How a model writes a turn: each file is one dialect (instructions, rendering, parser); see
`base`.
"""
