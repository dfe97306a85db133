"""The kind for tests and the fake API server, as the tests of the runtime have them."""

from tests.controller.runtime.conftest import hasty, running, server

__all__ = ["hasty", "running", "server"]
