"""Real registries, built from Go modules, and images that they hold: signed, denied, pinned."""
