"""MCP servers mounted as tools. `Servers` is the door; nothing here imports the SDK before a server is wanted."""

from .config import ServerConfig, parse_servers
from .servers import Servers
from .state import ServerState

__all__ = ["ServerConfig", "ServerState", "Servers", "parse_servers"]
