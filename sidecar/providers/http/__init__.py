"""Providers over HTTP: one transport, one stream reader, one dialect per API."""
