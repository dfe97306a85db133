"""A fake API server with honest semantics: see `server.FakeApiServer`."""

from tests.fakes.apiserver.server import FakeApiServer

__all__ = ["FakeApiServer"]
