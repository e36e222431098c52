"""The Model Context Protocol on stdio: the index, code execution, chats and patches as tools of coding agents."""

from .frontend import McpFrontend

__all__ = ["McpFrontend"]
