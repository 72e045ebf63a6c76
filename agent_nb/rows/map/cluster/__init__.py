"""Rows asked by the workers of a Dask cluster: what travels, who asks it, and what comes back.

Read `dask_rows` first (the client); `messages` and `spec` are what travels, `worker` is the other
side.
"""
