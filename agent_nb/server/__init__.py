"""The server: publish runs to subscribers (`hub`) and over HTTP (`app`, `serve`)."""
