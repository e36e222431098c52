"""The conversation: chats, their sessions, queues and turns. Does not know JSON-RPC."""
