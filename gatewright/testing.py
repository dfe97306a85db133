"""What tests of a team's own kinds and controllers import: one reconcile at a time, without an API server.

client = FakeClient()
await client.create(WIDGET.resource, {"metadata": {"name": "gears", "namespace": "default"}, "spec": {}})
await reconcile(WIDGET, client, "gears")
assert client.writes[1:] == ["apply deployments default/gears", "apply widgets/status default/gears"]
assert client.events == []
"""

from controller.runtime.fake_client import FakeClient
from controller.runtime.testing import FakeRuntime, reconcile

__all__ = ["FakeClient", "FakeRuntime", "reconcile"]
