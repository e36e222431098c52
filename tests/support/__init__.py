"""A black-box harness: spawns any command line that speaks the contract and watches what it says.

Knows the wire (plain `json`) and the message types of `sidecar_protocol`; nothing of the program behind.
"""
