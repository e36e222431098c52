"""The local web page of `sidecar insight`: its HTTP server, its guard and its files. Knows no SQL and no chat."""
