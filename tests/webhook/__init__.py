"""The policy server: a folder for each of its packages; policies are in tests/policies.

Here are AdmissionReviews (test_review), any body at all (test_any_review), findings, and what is
known of a cluster. `asking` has requests and policies for tests of the engine.
"""
