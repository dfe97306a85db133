"""The built-in policies and policy sets: each policy's cases are in the YAML file of its name.

test_policies runs the cases here, test_on_a_cluster sends them to a real API server (`on_a_cluster`). The other
modules test what cases cannot express: patches, updates, pod security against Kubernetes' own library.
"""
