"""Tools: `decorator` makes them of functions, `toolset` collects, `runner` runs, `approval` asks.

`base` is the contract of the room; a file that defines `tools` is a plug-in with built-in tools.

Order: base, capture, chart_words, docstrings, figure_artists, offered_code, paths, reads,
  safe_types, source_text, threads, values, variable_facts, wrappers
< command_line, display, frames, plain_values, read_files, signature, source, text_excerpt
< pictures, project_source, schema, standing
< clock_reads, decorator, results
< add_cell, describe, execution, files, mcp, policy, python, running_call, shell
< approval, policy_file, toolset, variables
< policy_check, runner
"""
