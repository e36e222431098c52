"""The protocols that the sidecar speaks. A frontend decodes, calls `chat`, and encodes. It decides nothing."""
