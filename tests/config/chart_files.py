"""The generated files of the chart by path, and the plain manifests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from config import crds
from config.documents import parse_documents
from controller.runtime.kind import PlannedKind
from kube.resource import Resource
from tests.config import chart_rights

HEADER = "# Generated from charts/gatewright by `make manifests`; do not edit.\n"
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": "gatewright-system",
        "labels": {
            "app.kubernetes.io/name": "gatewright",
            "pod-security.kubernetes.io/enforce": "restricted",
        },
    },
}


def generated(
    kinds: Sequence[PlannedKind[Any]],
    looked_up: Sequence[Resource],
    presets: Mapping[str, str],
    reports: Mapping[str, str],
    audited: Sequence[Resource] = (),
) -> dict[str, str]:
    """Return the CRDs, and the chart's copies of CRDs, role rules and policy sets.

    `looked_up` are the resources that policies may look up, `audited` those that the audit lists;
    `presets` are policy sets, `reports` the CRDs of reports, both by file name.
    """
    definitions = crds.render()
    chart = "charts/gatewright/files"
    return {
        **{f"config/crd/bases/{name}": text for name, text in definitions.items()},
        **{f"{chart}/crds/{name}": text for name, text in definitions.items()},
        **{f"{chart}/reports/{name}": text for name, text in reports.items()},
        f"{chart}/rbac.yaml": chart_rights.render(kinds, looked_up, audited),
        **{f"{chart}/policies/{name}": text for name, text in presets.items()},
    }


def plain(rendered: str) -> dict[str, str]:
    """Split the output of `helm template` into RBAC and the rest."""
    values = [each.value for each in parse_documents(rendered.encode(), "helm template")]
    objects = [each for each in values if each["kind"] != "CustomResourceDefinition"]
    rights = [each for each in objects if each["kind"] in RIGHTS]
    return {
        "config/rbac/rbac.yaml": _dump([NAMESPACE, *rights]),
        "config/manager/manager.yaml": _dump([each for each in objects if each not in rights]),
    }


def _dump(objects: Iterable[Mapping[str, Any]]) -> str:
    return HEADER + yaml.safe_dump_all(objects, sort_keys=False, width=120)
