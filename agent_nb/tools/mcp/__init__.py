"""Tools of MCP servers: `-t mcp:NAME`, `-t mcp:NAME/TOOL`, `Agent(tools=[mcp_server(…)])`.

A cell names servers of `.mcp.json` (`config_file`, `references`). When a run starts live, `opening`
starts those that are not running and replaces the references by tools (`described`). The servers of
a kernel live in `hub`, on one thread of their own (`host.background`), one `session` each.

Rules
- A server of a `.mcp.json` starts only after the user has allowed exactly its entry.
- A replay starts none: a record is found by the references, and its calls are never run again.
- Servers may list tools, run them, report progress and ask the user (`elicitation`). Sampling is
  refused, and no folders (roots) are offered.
"""
