"""End-to-end tests: real processes, a real API server, and kubectl.

A test applies manifests and checks what a user sees: kubectl's output, the final objects, events and logs. `policies`
uses an installation whose policies are objects of the cluster.
"""
