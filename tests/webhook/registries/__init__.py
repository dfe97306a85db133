"""Registries: logins, the client beside hostile servers, what is attached to images, the cache."""
