"""Conversion between versions of a kind, there and back. Over HTTP: tests/webhook/server."""
