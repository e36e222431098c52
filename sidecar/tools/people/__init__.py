"""Tools that users see or answer."""
