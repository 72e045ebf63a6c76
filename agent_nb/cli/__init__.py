"""The command line `jupyter agent-nb`: one file for each group of commands. Read `main` first.

Order of imports, lowest level first: parameters, run_summary, shared, terminal
< tables
< convert, doctor, git, records, report, run, serve, signing, trusting
< main
"""
