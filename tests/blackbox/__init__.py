"""Tests of the running program, from outside: spawned processes, pipes, terminals."""
