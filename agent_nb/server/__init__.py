"""The network edge: fan-out of runs to subscribers (`hub`), an ASGI app (`app`), and a client that
follows a remote run (`client`).
"""
