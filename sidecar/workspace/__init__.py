"""The project's files: which paths may be opened, and how files are read, compared and changed. Knows no
caller."""
