"""The runtime, module by module, with a kind for tests on an API server in memory.

test_convergence has random events. Properties that cross modules are in
tests/controller/properties.
"""
