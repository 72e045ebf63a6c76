"""The process and the folder it runs in: plug-ins, trust, imports, and what the process that
started this one vouches for.
"""
