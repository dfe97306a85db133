"""The webhook: a package for each of its packages; tests/policies tests the policies.

This package tests AdmissionReviews (test_review, and test_any_review with random bodies), findings, and the known
state of a cluster. `asking` has requests and policies for tests of the engine.
"""
