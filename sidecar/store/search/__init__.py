"""Full-text search over messages and indexed text."""
