"""The real agents as engines; `make test-agents` runs them."""
