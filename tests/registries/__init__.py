"""Real registries, built from Go modules, with images that are signed, denied or pinned."""
