"""Kinds: tables of (spec, observed) -> plan for each, and guarantees of every kind.

test_every_* check these guarantees on samples and hard cases of all kinds. The scripts of database pods run in
tests/databases.
"""
