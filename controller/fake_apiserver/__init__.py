"""An in-process API server for tests; a conformance suite compares it with the real one."""

from controller.fake_apiserver.server import FakeApiServer

__all__ = ["FakeApiServer"]
