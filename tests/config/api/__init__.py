"""The types of each kind: defaults, bounds, and common mistakes of users."""
