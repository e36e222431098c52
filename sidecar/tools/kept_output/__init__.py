"""Tools that search and read text stored in the index instead of the context window."""
