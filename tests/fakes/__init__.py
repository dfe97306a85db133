"""What tests use instead of a network that fails and a clock that takes time."""
