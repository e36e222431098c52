"""The native protocol: the wire contract of `protocol/`. Loads nothing: see `greeting`."""
