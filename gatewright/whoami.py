"""The user that the API server authenticates: `gatewright run` judges children as this user's requests."""

import logging

from kube.client import Client
from kube.endpoint import Endpoint
from kube.errors import ApiError
from kube.resource import Resource
from webhook.engine import ControllerUser

REVIEW = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)

log = logging.getLogger("gatewright.run")


async def whoami(endpoint: Endpoint) -> ControllerUser | None:
    """Ask once; None where there is no answer, which is logged."""
    try:
        async with Client(endpoint) as client:
            answer = await client.create(REVIEW, {"metadata": {}})
    except ApiError as error:
        log.warning("what is made is judged as the ServiceAccount's: who we are is not known: %s", error)
        return None
    user = answer["status"]["userInfo"]
    return ControllerUser(user["username"], tuple(user.get("groups", ())))
