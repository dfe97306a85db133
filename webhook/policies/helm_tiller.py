"""No pod runs Tiller, the server side of Helm 2.

Why: Tiller acts for whoever reaches it, with rights that are mostly those of the whole cluster. Helm 3 needs none.

Judged: containers, init containers and ephemeral containers of pods and of everything that makes pods.

Allowed: every image but that one.
Denied:  `ghcr.io/helm/tiller:v2.17.0`, from whatever registry.
Fix: use Helm 3 or later.
"""

from collections.abc import Iterator

from webhook.engine import Params, Policy, Request, Violation


def validate(request: Request, params: Params) -> Iterator[Violation]:
    """Yield one violation for each container that runs Tiller."""
    for container in request.containers():
        image = container.string("image") or ""
        last = image.rpartition("/")[2]
        if last.partition("@")[0].partition(":")[0] == "tiller":
            yield container.violation("image", image, "Tiller must not run", "use Helm 3 or later")


POLICY = Policy("helm-tiller", validate=validate, kinds="pods", category="workloads", severity="high")
