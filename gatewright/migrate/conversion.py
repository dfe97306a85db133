"""Convert documents to policy objects; each is compiled before it counts as converted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from config.documents import Document
from config.faults import FaultsError
from gatewright.migrate.cel_policies import convert_cel_policy
from gatewright.migrate.elsewhere import nearest
from gatewright.migrate.exceptions import convert_exception
from gatewright.migrate.gatekeeper import GROUP, convert_constraint, excluded_namespaces
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.kyverno import convert_policy
from gatewright.migrate.mutators import GROUP as MUTATION_GROUP
from gatewright.migrate.mutators import convert_mutator
from gatewright.migrate.pod_security import convert_labels
from gatewright.migrate.results import (
    Converted,
    ConvertedPolicy,
    NotEqualError,
    Origin,
    Unconverted,
)
from kube.resource import group_version
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

Converter = Callable[[Origin, KindNames], Converted]
LEGACY, CEL = "kyverno.io", "policies.kyverno.io"
OF_KYVERNO: dict[tuple[str, str], Converter] = {
    (LEGACY, "ClusterPolicy"): convert_policy,
    (LEGACY, "Policy"): convert_policy,
    (CEL, "ValidatingPolicy"): convert_cel_policy,
    (CEL, "NamespacedValidatingPolicy"): convert_cel_policy,
    (CEL, "MutatingPolicy"): convert_cel_policy,
}
VERSIONS = {
    LEGACY: ("v1", "v2beta1", "v2"),
    CEL: ("v1alpha1", "v1beta1", "v1"),
    "constraints.gatekeeper.sh": ("v1alpha1", "v1beta1", "v1"),
    "mutations.gatekeeper.sh": ("v1alpha1", "v1beta1", "v1"),
}
# Kinds that the conversion of other documents needs.
CONTEXT = ("CustomResourceDefinition", "Namespace", "ConstraintTemplate", "Config")


@dataclass(slots=True)
class Migration:
    """The converted objects, the unconverted rules, and the documents that could not be read."""

    converted: list[ConvertedPolicy] = field(default_factory=list)
    unconverted: list[Unconverted] = field(default_factory=list)
    skipped: list[Unconverted] = field(default_factory=list)


def migrate(documents: Iterable[Document], expires: str = "") -> Migration:
    """Convert the policies among documents; exceptions expire at `expires`."""
    documents = list(documents)
    run = _Run(KindNames(documents))
    templates, excluded, unchanged = run.gatekeeper_context(documents)
    constraint = partial(convert_constraint, templates=templates, excluded=excluded)
    mutator = partial(convert_mutator, excluded=unchanged)
    exceptions = []
    for document in documents:
        group, version = group_version(str(document.value.get("apiVersion")))
        kind = str(document.value.get("kind"))
        if version not in VERSIONS.get(group, (version,)):
            run.skip(document, f"unknown version {version} of {group}")
        elif kind == "PolicyException" and group in (LEGACY, CEL):
            exceptions.append(document)
        elif f"{group}/" == GROUP:
            run.convert(document, constraint)
        elif f"{group}/" == MUTATION_GROUP:
            run.convert(document, mutator)
        elif (group, kind) in OF_KYVERNO:
            run.convert(document, OF_KYVERNO[group, kind])
        elif group in (LEGACY, CEL):
            reason = f"{kind} is not converted"
            run.found.unconverted.append(Unconverted(Origin(document), reason))
        elif kind not in CONTEXT:
            run.skip(document, "no policy of Kyverno, Gatekeeper or Pod Security")
    policies = list(run.found.converted)
    convert = partial(convert_exception, policies=policies, expires=expires)
    for document in exceptions:
        run.convert(document, convert)
    run.add(map(_compiled, convert_labels(documents)))
    return run.found


class _Run:
    """Collects results, with unique names."""

    def __init__(self, names: KindNames) -> None:
        self.found = Migration()
        self._names = names
        self._taken = set[tuple[str, str, str]]()

    def skip(self, document: Document, reason: str) -> None:
        self.found.skipped.append(Unconverted(Origin(document), reason))

    @contextmanager
    def reading(self, document: Document) -> Iterator[None]:
        """Skip a document with missing fields or fields of wrong types."""
        try:
            yield
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            self.skip(document, f"it cannot be read: {_fault(error)}")

    def gatekeeper_context(
        self, documents: Iterable[Document]
    ) -> tuple[dict[str, Mapping[str, Any]], list[str], list[str]]:
        """Return Gatekeeper's templates by kind, and the namespaces that its Config excludes.

        The namespaces are given separately for constraints and for mutators.
        """
        templates, excluded, unchanged = dict[str, Mapping[str, Any]](), list[str](), list[str]()
        for document in documents:
            value = document.value
            with self.reading(document):
                if value.get("kind") == "ConstraintTemplate":
                    templates[value["spec"]["crd"]["spec"]["names"]["kind"]] = value
                elif str(value.get("apiVersion")).startswith("config.gatekeeper.sh/"):
                    excluded += excluded_namespaces(value, "webhook")
                    unchanged += excluded_namespaces(value, "mutation-webhook")
        return templates, excluded, unchanged

    def convert(self, document: Document, convert: Converter) -> None:
        results: list[ConvertedPolicy | Unconverted] = []
        with self.reading(document):
            try:
                results = [_compiled(each) for each in convert(Origin(document), self._names)]
            except NotEqualError as error:
                results = [_compiled(Unconverted(Origin(document), str(error), error.nearest))]
        self.add(results)

    def add(self, results: Iterable[ConvertedPolicy | Unconverted]) -> None:
        for each in results:
            if isinstance(each, Unconverted):
                self.found.unconverted.append(each)
                continue
            each.name = next(
                name for name in _names(each) if self._key(each, name) not in self._taken
            )
            self._taken.add(self._key(each, each.name))
            self.found.converted.append(each)

    @staticmethod
    def _key(each: ConvertedPolicy, name: str) -> tuple[str, str, str]:
        return each.namespace, each.kind.replace("Cluster", ""), name


def _fault(error: Exception) -> str:
    """Return the fault of a document, as a message for its author."""
    if isinstance(error, KeyError):
        return f"the field {error.args[0]} is missing"
    return "a field has a value of a wrong type"


def _compiled(each: ConvertedPolicy | Unconverted) -> ConvertedPolicy | Unconverted:
    """Compile a converted object; an invalid one becomes Unconverted, with the fault as reason."""
    if isinstance(each, Unconverted):
        name, kind = each.origin.metadata.get("name"), each.origin.document.value.get("kind")
        near = each.nearest or nearest(str(name)) or nearest(str(kind))
        return Unconverted(each.origin, each.reason, near)
    try:
        bind(each.object, catalogue())
    except FaultsError as error:
        path, text = next(iter(error.faults))
        return _compiled(
            Unconverted(each.origin, f"Gatewright does not take {path or 'it'}: {text}")
        )
    return each


def _names(each: ConvertedPolicy) -> Iterator[str]:
    yield each.name
    yield from (f"{each.name}-{number}" for number in range(2, 10_000))
