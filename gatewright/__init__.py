"""Gatewright: controls what enters a Kubernetes cluster, and runs what it admits."""

__version__ = "0.1.0"
