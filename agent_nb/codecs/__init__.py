"""How a run travels: each file is one format (decoder, encoder, media type, what it cannot carry);
see `base`.
"""
