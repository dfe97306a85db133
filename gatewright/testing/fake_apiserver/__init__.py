"""An in-process API server for tests; a conformance suite compares it with the real one."""

from gatewright.testing.fake_apiserver.server import FakeApiServer

__all__ = ["FakeApiServer"]
