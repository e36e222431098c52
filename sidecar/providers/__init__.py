"""Model providers: one module per provider, behind the interface in `base`."""
