"""What the tools of a model may do without asking: pure, no I/O and no clock. Does not know how the user is asked."""
