"""The authenticated user, whose requests create children under `gatewright run`."""

import logging

from kube.client import Client
from kube.endpoint import Endpoint
from kube.errors import ApiError
from kube.resource import Resource
from webhook.engine import ControllerUser

REVIEW = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)

log = logging.getLogger("gatewright.run")


async def whoami(endpoint: Endpoint) -> ControllerUser | None:
    """Ask the API server once; log a failure and return None."""
    try:
        async with Client(endpoint) as client:
            answer = await client.create(REVIEW, {"metadata": {}})
    except ApiError as error:
        log.warning(
            "cannot read the current user; judging children as requests of the ServiceAccount: %s",
            error,
        )
        return None
    user = answer["status"]["userInfo"]
    return ControllerUser(user["username"], tuple(user.get("groups", ())))
