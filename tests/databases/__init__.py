"""Planned database pods and backups, run on this machine with real servers, tools and stores.

Tests of a database that is not installed are skipped, and fail in CI. For MongoDB's server,
FerretDB speaks its protocol.
"""
