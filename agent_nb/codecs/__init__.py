"""How a run travels: each plug-in is one format; see `base`."""
