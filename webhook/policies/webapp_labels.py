"""Every WebApp carries the labels its operator goes by.

Why: `kubectl get all -l managed-by=webapp-operator` should show what this operator looks after. Always in force: it
belongs to the kind.

Sets: the label `managed-by: webapp-operator` on the WebApp's own metadata, whatever stood there, and the label
`version: v1` where there is no `version`.
Fix: nothing to do; the labels are added on the way in.
"""

from collections.abc import Iterator

from webhook.engine import Params, Patch, Policy, Request


def mutate(request: Request, params: Params) -> Iterator[Patch]:
    """Yield the two labels."""
    yield Patch(("metadata", "labels", "managed-by"), "webapp-operator", overwrite=True)
    yield Patch(("metadata", "labels", "version"), "v1")


POLICY = Policy("webapp-labels", mutate=mutate, kinds=("WebApp",), category="webapp", severity="low", always=True)
