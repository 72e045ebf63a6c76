"""The process and its folder: plug-ins, trust, imports, and how the process was launched."""
