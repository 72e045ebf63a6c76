"""The hub over Redis: kernels publish their runs, and any number of servers serve them."""
