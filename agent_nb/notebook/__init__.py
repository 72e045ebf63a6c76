"""The notebook edge: input transformer, magics, the in-kernel session, the record in the file,
execution through nbclient.
"""
