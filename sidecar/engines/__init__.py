"""Engines run turns; `registry` has them by name. `native` calls the provider, runs the tools that the model calls, and
calls it again.
"""
