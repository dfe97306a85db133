"""The objects that helm renders from the chart, and accessors for tests."""

from pathlib import Path

from kube.resource import JsonObject

CHART = Path(__file__).parents[2] / "charts/gatewright"
MODES = [None, *sorted(CHART.glob("ci/*-values.yaml"))]
NAMESPACE = "gatewright-system"


class Rendered(dict[tuple[str, str], JsonObject]):
    """The rendered objects by kind and name."""

    def pod(self, name: str) -> JsonObject:
        """The pod's spec in a Deployment."""
        return self["Deployment", name]["spec"]["template"]["spec"]

    def arguments(self, name: str) -> list[str]:
        """The arguments of a Deployment's only container."""
        (container,) = self.pod(name)["containers"]
        return container["args"]

    def rights(self, name: str) -> set[tuple[str, str, str]]:
        """The permissions of a ClusterRole, as (group, resource, verb)."""
        return {
            (rule["apiGroups"][0], resource, verb)
            for rule in self["ClusterRole", name]["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }

    def rules(self, kind: str, name: str, resource: str) -> list[JsonObject]:
        """The rules of a role for a resource."""
        return [rule for rule in self[kind, name]["rules"] if resource in rule["resources"]]
