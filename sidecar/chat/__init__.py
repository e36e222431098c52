"""The conversation: chats, their sessions, queues and turns. Has never heard of JSON-RPC."""
