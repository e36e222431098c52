"""The native dialect: the wire contract of `protocol/`."""

from .face import NativeFace

__all__ = ["NativeFace"]
