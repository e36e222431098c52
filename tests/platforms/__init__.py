"""The real coding agents from npm, against the fake provider, without a network. `make test-platforms` runs them."""
