"""The hub over Redis: kernels publish their runs, and any number of servers serve them.

Why: one server then shows the runs of all kernels of a user or a team.

Read `hub` first. `publisher` writes runs to Redis (`outgoing`: one run), `mirrors` reads those of
other processes. `remote_control` sends stops and answers, which `control` obeys. `link` is the
connection.
"""
