"""The command line: one file per group of commands.

Order: shared, terminal
< convert, doctor, git, records, report, run, serve, signing, trusting
< main
"""
