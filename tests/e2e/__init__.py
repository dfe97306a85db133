"""Gatewright as a person runs it: real processes, a real API server, and kubectl.

A test applies manifests and reads what a person would read: kubectl's output, the final objects,
events, logs. `policies` is an installation with policies as objects of the cluster.
"""
