"""The conversation, part by part: what can be tested without a process."""
