"""Executing notebooks without a front end: `run` and `test`.

Order: cell_failure, event_relay, kernels, parameters, progress, project, report, same_run,
  shown_pictures, stopping
< cell_client, quiet
< client
< cell_problems
< notebook_check
< pytest_plugin
"""
