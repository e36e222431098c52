"""Who answers: one module for each provider, behind the interface in `base`."""
