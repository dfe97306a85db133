"""The types of each kind: defaults, bounds, and what people write carelessly."""
