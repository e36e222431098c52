"""The TypeScript client from npm, as its users install it: `make test-typescript`."""
