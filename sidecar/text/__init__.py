"""Pure functions on strings. Knows nothing else of ours."""
