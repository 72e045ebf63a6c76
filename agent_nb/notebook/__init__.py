"""The notebook edge: magics, cells, the session of a kernel, records in files."""
