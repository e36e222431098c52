"""Plain frozen values that the rooms above share. They do not travel: `sidecar_protocol` has the types that do."""
