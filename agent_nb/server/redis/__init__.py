"""The hub over Redis: kernels publish their runs, and any number of servers serve them.

Read `hub` first. `publisher` writes runs to Redis, `mirrors` reads those of other processes,
`control` sends their stops and answers; `link` is the connection.
"""
