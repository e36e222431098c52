"""Shows whether a program is a Sidecar, by tests of its guarantees, and whether a client can follow one, by recorded
conversations. Knows the contract and nothing of the program under test.
"""
