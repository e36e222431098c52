"""What all chats of the process share, and the connected app as they see it."""
