"""No pod runs Tiller, the server side of Helm 2.

Why: Tiller executes the requests of any client that can reach it, usually with cluster-wide rights. Helm 3 has no such
server.

Allowed: every other image.
Denied:  `ghcr.io/helm/tiller:v2.17.0`, from any registry.
Fix: use Helm 3 or later.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.images import parsed


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each container that runs Tiller."""
    for container in request.containers():
        image = parsed(container.image or "")
        if image is not None and image.repository.rpartition("/")[2] == "tiller":
            yield container.violation("image", container.image, "Tiller must not run", "use Helm 3 or later")


POLICY = Policy("helm-tiller", validate=validate, category="workloads", severity="high")
