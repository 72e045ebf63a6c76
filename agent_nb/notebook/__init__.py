"""The notebook edge: magics, cells, the session of a kernel, records in files, execution.

Order: conversations, identity, notices, option_table, saved_views, transform, yes_no
< files, mcp_servers, options, presave
< doctor, output_option, session
< cell
< follow
< commands, presenter
< completion
< magic
"""
