"""Models on this machine, run by a worker process."""
