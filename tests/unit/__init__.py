"""Tests of one package each, laid out like the source."""
