"""The runtime, module by module, with a kind for tests on an in-memory API server.

test_convergence uses random events. Properties that cross modules are in tests/controller/properties.
"""
