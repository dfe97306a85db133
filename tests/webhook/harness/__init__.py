"""Manifests and case files: judged as applied, and no suite passes without testing."""
