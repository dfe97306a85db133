"""Where the fixtures of all tests come from, and how properties are tried: on a busy machine time says nothing."""

import os

from hypothesis import settings

pytest_plugins = ["tests.controlplane.fixtures"]

settings.register_profile("quick", deadline=None, max_examples=40, derandomize="CI" in os.environ)
settings.register_profile("thorough", deadline=None, max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
