"""Who runs a turn. `native` is ours: ask the provider, run its tools, ask again."""
