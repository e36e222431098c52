"""The project's files: where they may be opened, and nothing of who asks for them."""
