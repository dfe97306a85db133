"""Registries: logins, the client with hostile servers, signatures and attestations, the cache."""
