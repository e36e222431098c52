"""GitHub Copilot as an engine, by its SDK (the extra `[copilot]`) and its runtime, a program of its own."""
