"""What the conversion of one document needs of the other documents."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.results import ConvertedPolicy, texts

# Kinds that only the conversion of other documents needs.
KINDS = ("CustomResourceDefinition", "Namespace", "ConstraintTemplate", "Config")


@dataclass(slots=True)
class Context:
    """Known kinds, Gatekeeper's templates and excluded namespaces, and what is converted so far."""

    kinds: KindNames
    expires: str
    converted: list[ConvertedPolicy]
    templates: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _excluded: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, value: Mapping[str, Any]) -> None:
        """Read a ConstraintTemplate or the Config of Gatekeeper."""
        if value.get("kind") == "ConstraintTemplate":
            self.templates[value["spec"]["crd"]["spec"]["names"]["kind"]] = value
        elif str(value.get("apiVersion")).startswith("config.gatekeeper.sh/"):
            for each in (value.get("spec") or {}).get("match") or ():
                for process in texts(each.get("processes")):
                    self._excluded[process] += texts(each.get("excludedNamespaces"))

    def excluded_from(self, process: str) -> list[str]:
        """Return the namespaces that the Config excludes from one of Gatekeeper's processes."""
        return list(dict.fromkeys(self._excluded["*"] + self._excluded[process]))
