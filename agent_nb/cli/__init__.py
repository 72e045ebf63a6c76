"""The command line: one file per group of commands.

Order: parameters, run_summary, shared, tables, terminal
< convert, doctor, git, records, report, run, serve, signing, trusting
< main
"""
