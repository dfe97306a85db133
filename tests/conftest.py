"""Where the fixtures of all tests come from."""

pytest_plugins = ["tests.controlplane.fixtures"]
