"""Fakes for a network that fails and for a clock that takes time."""
