"""Providers that are asked over HTTP: one transport, one reader of streams, a dialect for each API."""
