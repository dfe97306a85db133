"""What the conversion of one document needs of the other documents."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from config.field_paths import value_at
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.results import ConvertedPolicy, Origin, texts
from kube.resource import group_version

DESCRIBING = ("policies.kyverno.io", "metadata.gatekeeper.sh")  # prefixes of annotations
# Kinds that only the conversion of other documents needs.
KINDS = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("v1beta1", "v1"),
    ("", "Namespace"): ("v1",),
    ("templates.gatekeeper.sh", "ConstraintTemplate"): ("v1alpha1", "v1beta1", "v1"),
    ("config.gatekeeper.sh", "Config"): ("v1alpha1",),
}
"""Their known versions, by group and kind."""


@dataclass(slots=True)
class Context:
    """Known kinds, Gatekeeper's templates and excluded namespaces, and what is converted so far."""

    kinds: KindNames
    expires: str
    converted: list[ConvertedPolicy]
    templates: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _excluded: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, value: Mapping[str, Any]) -> None:
        """Read a ConstraintTemplate or the Config of Gatekeeper, of a known version."""
        if not is_describing(value):
            return
        if kind := self.kind_of_template(value):
            self.templates[kind] = value
        elif value.get("kind") == "Config":
            for entry in (value.get("spec") or {}).get("match") or ():
                for process in texts(entry.get("processes")):
                    self._excluded[process] += texts(entry.get("excludedNamespaces"))

    @staticmethod
    def kind_of_template(value: Mapping[str, Any]) -> str:
        """Return the kind of a template's constraints; "" for another object."""
        if value.get("kind") != "ConstraintTemplate":
            return ""
        kind = value_at(value, "spec.crd.spec.names.kind")
        return kind if isinstance(kind, str) else ""

    def describe(self, origin: Origin) -> tuple[str, str]:
        """Return the title and the description that the author gave, each in one line."""
        template = self.templates.get(str(origin.document.value.get("kind")), {})
        annotations = _annotations(template) | _annotations(origin.document.value)
        texts = []
        for word in ("title", "description"):
            named = (*(f"{prefix}/{word}" for prefix in DESCRIBING), word)
            text = next((annotations[key] for key in named if key in annotations), "")
            texts.append(" ".join(str(text).split()))
        return texts[0], texts[1]

    def excluded_from(self, process: str) -> list[str]:
        """Return the namespaces that the Config excludes from one of Gatekeeper's processes."""
        return list(dict.fromkeys(self._excluded["*"] + self._excluded[process]))


def is_describing(value: Mapping[str, Any]) -> bool:
    """Return whether an object is of a known version of one of `KINDS`."""
    group, version = group_version(str(value.get("apiVersion")))
    return version in KINDS.get((group, str(value.get("kind"))), ())


def _annotations(value: Mapping[str, Any]) -> dict[str, Any]:
    metadata = value.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
