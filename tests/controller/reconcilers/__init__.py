"""Kinds: tables of (spec, observed) -> plan for each, and what every kind promises.

test_every_* hold samples and hard cases of all kinds to the same promises. The scripts of database
pods run in tests/databases.
"""
