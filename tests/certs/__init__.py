"""Certificates: contents, validation, bundles. The Secrets are in tests/controller/registration."""
