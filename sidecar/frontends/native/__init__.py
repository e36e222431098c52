"""The native protocol: the wire contract of `protocol/`."""

from .frontend import NativeFrontend

__all__ = ["NativeFrontend"]
