"""The server: publish runs to subscribers (`hub`) and over HTTP (`app`, `serve`).

Order: access, agents, channel, filters, store, toolfile
< frames, subscription
< hub
< app, redis
< serve
"""
