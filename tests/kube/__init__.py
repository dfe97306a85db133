"""The client, watches and stores, against servers that fail in every way.

test_conformance* run on the fake API server and on a real one alike, so tests may trust the fake.
"""
