"""What fits: pure."""
