"""Sets the labels by which WebApps are selected.

Why: `kubectl get all -l managed-by=webapp-operator` should list every object that this operator
manages. Always in force, as part of the kind.

Sets: the label `managed-by: webapp-operator` on the WebApp's metadata, replacing any other value,
and the label `version: v1` where `version` is unset.
Fix: nothing to do; the labels are set at admission.
"""

from webhook.engine import Params, Patch, Patches, Policy, Request


def mutate(request: Request, params: Params) -> Patches:
    """Yield the two labels."""
    yield Patch(("metadata", "labels", "managed-by"), "webapp-operator", overwrite=True)
    yield Patch(("metadata", "labels", "version"), "v1")


POLICY = Policy(
    "webapp-labels",
    mutate=mutate,
    kinds=("WebApp",),
    category="webapp",
    severity="low",
    always=True,
)
