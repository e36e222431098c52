"""The wire: pipes, and the dispatch of calls. Does not know chats."""
