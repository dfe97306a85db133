"""Sets a non-root security context on WebApps that set none.

Why: the safe setting should be the default. Only unset fields are set.

Sets on `spec.securityContext`: `runAsNonRoot: true`, `runAsUser: 1000`, `allowPrivilegeEscalation:
false`.
Fix: for an image that needs another user, set it explicitly: `spec.securityContext.runAsUser: 101`.
"""

from webhook.engine import Params, Patches, Policy, Request

DEFAULTS = {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False}


def mutate(request: Request, params: Params) -> Patches:
    """Yield a default for each of the three fields."""
    for container in request.containers():
        for field, value in DEFAULTS.items():
            yield container.set(("securityContext", field), value)


POLICY = Policy("webapp-security-defaults", mutate=mutate, kinds=("WebApp",), category="webapp")
