"""Asks the rows of a map on the workers of a Dask cluster.

Many rows with slow tools need more than one machine.

Read `dask_rows` first (the client's side). `messages` and `spec` define what travels; `worker` is
the worker's side.
"""
