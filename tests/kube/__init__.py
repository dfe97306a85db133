"""The client, watches and stores, against servers that fail in every way.

test_conformance* run on both the fake and a real API server, so that tests can rely on the fake.
"""
