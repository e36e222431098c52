"""The clients of editors from npm drive `sidecar acp`: `make test-editors`."""
