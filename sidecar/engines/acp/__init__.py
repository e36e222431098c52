"""Agents that speak the Agent Client Protocol, as engines: we are their client, over the pipes of a child process."""
