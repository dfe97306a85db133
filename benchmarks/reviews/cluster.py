"""A fake API server in a separate process, with one namespace whose labels the webhook looks up.

Prints its URL.
"""

import asyncio

from benchmarks.reviews.bodies import LABELLED
from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy
from config.api.policy_exception import PolicyException
from config.crds import definition
from gatewright.testing.fake_apiserver import FakeApiServer
from gatewright.testing.fake_apiserver.server import NAMESPACE


async def main() -> None:
    """Serve until killed."""
    async with FakeApiServer() as server:
        for kind in (ClusterAdmissionPolicy, AdmissionPolicy, PolicyException):
            server.define(definition(kind))
        server.create(
            NAMESPACE, {"metadata": {"name": LABELLED, "labels": {"environment": "production"}}}
        )
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
