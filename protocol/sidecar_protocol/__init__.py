"""The contract between a sidecar and its client: messages, methods, framing, errors.

Both ends stand on this package; it stands on nothing of theirs. Nothing is imported here, so that the
sidecar's door can take `framing` without paying for the rest.
"""
