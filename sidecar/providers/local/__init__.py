"""Models on this machine, run by a process of their own."""
