"""Chats and their sessions: prompts, queue, leases, running turns."""
