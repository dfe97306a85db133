"""A kind that hands on rights may use exactly the roles that it names, on a real API server."""

import json
from datetime import UTC, datetime

import pytest

from config.api.widget import Widget, WidgetStatus
from controller.rights import roles
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed, Plan
from kube.resource import JsonObject, Resource
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

GROUP = "rbac.authorization.k8s.io"
BINDING = Resource(GROUP, "v1", "rolebindings", "RoleBinding")
ROLE = Resource(GROUP, "v1", "roles", "Role")
ACCOUNT = "the-maker"


def nothing(widget: Widget, observed: Observed, now: datetime) -> Plan:
    """Plan nothing: only the rights of the kind matter here."""
    del widget, observed, now
    return Plan((), WidgetStatus())


KIND = PlannedKind(
    Widget,
    plan=nothing,
    owns=(BINDING, ROLE),
    binds=("system:kube-scheduler",),
    escalates=("tenant",),
)


def object_of(kind: str, name: str, namespace: str, **fields: object) -> JsonObject:
    """Return an RBAC object."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **fields}


def test_only_the_named_roles_are_bound_and_given_more_rights(
    plane: ControlPlane, place: str
) -> None:
    """Without `bind` or `escalate`, an account cannot grant rights that it does not have."""
    account = f"{ACCOUNT}-{datetime.now(UTC).timestamp():.0f}"
    for object in roles(KIND, place, account, "webhook"):
        plane.kubectl("apply", "-f-", input=object)

    def may(object: JsonObject) -> bool:
        """Return whether the controller's account may create an object, by server-side apply."""
        user = f"--as=system:serviceaccount:{place}:{account}"
        text = json.dumps(object)
        made = plane.kubectl("apply", "--server-side", user, "-f-", input=text, check=False)
        return made.returncode == 0

    subjects = [{"kind": "Group", "name": "team", "apiGroup": GROUP}]
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    for name, is_allowed in (("system:kube-scheduler", True), ("system:node", False)):
        reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
        binding = object_of("RoleBinding", name, place, roleRef=reference, subjects=subjects)
        assert may(binding) is is_allowed
    for name, is_allowed in (("tenant", True), ("other", False)):
        assert may(object_of("Role", name, place, rules=everything)) is is_allowed
