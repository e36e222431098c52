"""Compaction: replaces the oldest turns of a chat in the context by a summary."""
