"""The official clients from npm drive `sidecar mcp`: `make test-mcp-clients`."""
