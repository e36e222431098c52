"""Figures of the sidecar beside those of its peers, all taken in one run on one machine."""
