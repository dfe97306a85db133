"""Planned database pods and backups, run on this machine with real PostgreSQL, MariaDB and S3.

Tests of a database that is not installed are skipped, and fail in CI. MongoDB's tools are
stand-ins.
"""
