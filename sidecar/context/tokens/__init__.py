"""Counts the tokens of a text for a model, without network access."""
