"""Gatewright: controls what enters a Kubernetes cluster, and runs the custom resources it admits."""

__version__ = "0.1.0"
