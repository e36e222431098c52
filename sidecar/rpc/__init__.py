"""The wire: pipes, and the dispatch of calls. Has never heard of a chat."""
