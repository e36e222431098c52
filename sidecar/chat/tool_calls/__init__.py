"""One tool call: permission check, file writes, execution, storage of its output."""
