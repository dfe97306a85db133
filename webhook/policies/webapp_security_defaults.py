"""WebApps run without root and without a way to it, unless they say otherwise.

Why: the safe setting should be the one that needs no typing. Each field is set only where the user set nothing.

Sets on `spec.securityContext`: `runAsNonRoot: true`, `runAsUser: 1000`, `allowPrivilegeEscalation: false`.
Fix: an image that needs another user says so: `spec.securityContext.runAsUser: 101`.
"""

from collections.abc import Iterator

from webhook.engine import Params, Patch, Policy, Request

DEFAULTS = {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False}


def mutate(request: Request, params: Params) -> Iterator[Patch]:
    """Yield a default for each of the three fields."""
    for container in request.containers():
        for field, value in DEFAULTS.items():
            yield container.set(("securityContext", field), value)


POLICY = Policy("webapp-security-defaults", mutate=mutate, kinds=("WebApp",), category="webapp")
