"""MCP servers mounted as tools. `Servers` is the entry point; the SDK is not imported until a server is needed."""

from .config import ServerConfig, parse_servers
from .servers import Servers
from .state import ServerState

__all__ = ["ServerConfig", "ServerState", "Servers", "parse_servers"]
