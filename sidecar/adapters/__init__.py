"""Coding agents that use Sidecar: their names, files, hook formats, and how their sessions are identified.

One module per agent; each exports `ADAPTER`. They do not know each other.
"""
