"""Gatewright: what is let into a cluster, and who builds what was let in."""

__version__ = "0.1.0"
