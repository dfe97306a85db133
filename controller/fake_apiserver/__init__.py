"""An in-process API server for tests, held to the real one by a conformance suite: see `server.FakeApiServer`."""

from controller.fake_apiserver.server import FakeApiServer

__all__ = ["FakeApiServer"]
