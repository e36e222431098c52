"""The Agent Client Protocol on stdio: chats as sessions of an editor. Loads nothing: see `greeting`."""
