"""Convert documents to policy objects; each is compiled before it counts as converted."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, NamedTuple

from config.documents import Document
from config.faults import FaultsError
from gatewright.tools.migrate.cel_policies import convert_cel_policy
from gatewright.tools.migrate.conflicts import leave_out_conflicts
from gatewright.tools.migrate.context import KINDS, Context, is_describing
from gatewright.tools.migrate.exceptions import convert_exception
from gatewright.tools.migrate.gatekeeper import convert_constraint
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.known_fields import (
    CEL_POLICY,
    CONSTRAINT,
    EXCEPTION,
    MUTATOR,
    RULES_POLICY,
    KnownShape,
    refuse_unknown,
)
from gatewright.tools.migrate.kyverno import convert_rule
from gatewright.tools.migrate.mutators import convert_mutator
from gatewright.tools.migrate.other_libraries import nearest
from gatewright.tools.migrate.pod_security import convert_labels
from gatewright.tools.migrate.results import (
    AS_IT_IS,
    CORRECT,
    KEEP,
    OWN_RULE,
    ConvertedPolicy,
    NotEqualError,
    Origin,
    Unconverted,
    refuse,
    refuse_large,
)
from kube.resource import group_version
from webhook.cel.errors import CompileError
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

ADMISSION = "admissionregistration.k8s.io"
NATIVE = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
# The tests of the tools' libraries.
OF_TESTS = ("cli.kyverno.io", "chainsaw.kyverno.io", "test.gatekeeper.sh")
ADD_CONSTRAINTS = "add its constraints to the FILEs: kubectl get constraints --output=yaml"
Converter = Callable[[Origin, Context], Iterable[ConvertedPolicy]]
EXCEPTIONS = "PolicyException"
OF_RULES = ("ClusterPolicy", "Policy")  # kinds whose rules are converted one by one
ANY = "*"
UNKNOWN_FUNCTION = re.compile(r"undeclared reference to '(\w+)\(\)'")


class Source(NamedTuple):
    """An API group: its known versions, and its kinds (`*`: any kind)."""

    versions: tuple[str, ...]
    kinds: Mapping[str, "SourceKind"]


class SourceKind(NamedTuple):
    """A kind of policy: its converter, and its fields that are known."""

    convert: Converter
    known: KnownShape


SOURCES = {
    "kyverno.io": Source(
        ("v1", "v2beta1", "v2"),
        {
            "ClusterPolicy": SourceKind(convert_rule, RULES_POLICY),
            "Policy": SourceKind(convert_rule, RULES_POLICY),
            "PolicyException": SourceKind(convert_exception, EXCEPTION),
        },
    ),
    "policies.kyverno.io": Source(
        ("v1alpha1", "v1beta1", "v1"),
        {
            "ValidatingPolicy": SourceKind(convert_cel_policy, CEL_POLICY),
            "NamespacedValidatingPolicy": SourceKind(convert_cel_policy, CEL_POLICY),
            "MutatingPolicy": SourceKind(convert_cel_policy, CEL_POLICY),
            "PolicyException": SourceKind(convert_exception, EXCEPTION),
        },
    ),
    "constraints.gatekeeper.sh": Source(
        ("v1alpha1", "v1beta1", "v1"), {ANY: SourceKind(convert_constraint, CONSTRAINT)}
    ),
    "mutations.gatekeeper.sh": Source(
        ("v1alpha1", "v1beta1", "v1"), {ANY: SourceKind(convert_mutator, MUTATOR)}
    ),
}


@dataclass(slots=True)
class Migration:
    """The converted objects, the unconverted rules, and the documents that could not be read.

    `others` are objects of kinds that have no policies, by kind.
    """

    converted: list[ConvertedPolicy] = field(default_factory=list)
    unconverted: list[Unconverted] = field(default_factory=list)
    skipped: list[Unconverted] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)


def migrate(documents: Iterable[Document], expires: str = "") -> Migration:
    """Convert the policies among documents; exceptions expire at `expires`."""
    documents = list(documents)
    run = _Run(Context(KindNames(documents), expires, converted=[]))
    for document in documents:
        with run.reading(Origin(document)):
            run.context.add(document.value)
    for document in documents:
        if document.value.get("kind") != EXCEPTIONS:
            run.convert(document)
    run.leave_out_conflicts()
    # Exceptions name converted policies.
    for document in documents:
        if document.value.get("kind") == EXCEPTIONS:
            run.convert(document)
    for policy in convert_labels(documents):
        run.add(policy)
    run.list_templates(documents)
    return run.found


class _Run:
    """Collects results, with unique names."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.found = Migration(context.converted)
        self._taken = set[tuple[str, bool, str]]()

    @contextmanager
    def reading(self, origin: Origin) -> Iterator[None]:
        """Skip what has missing fields or fields of wrong types; list what has no equivalent."""
        try:
            yield
        except NotEqualError as error:
            self._refuse(origin, str(error), error.nearest)
        except CompileError as error:
            self._refuse(origin, f"its CEL is invalid: {error}", CORRECT)
        except KeyError as error:
            self._skip(origin, f"it cannot be read: the field {error.args[0]} is missing")
        except (TypeError, AttributeError, ValueError):
            self._skip(origin, "it cannot be read: a field has a value of a wrong type")

    def convert(self, document: Document) -> None:
        """Convert a document, or each of its rules."""
        group, version = group_version(str(document.value.get("apiVersion")))
        kind, whole = str(document.value.get("kind")), Origin(document, value=document.value)
        source = SOURCES.get(group)
        if source is None:
            versions = KINDS.get((group, kind))
            if group == ADMISSION and kind in NATIVE:
                self._refuse(whole, "it is the API server's own", AS_IT_IS)
            elif versions is not None:
                self._require_version(whole, group, version, versions)
            elif self.context.kinds.has(group, kind) or group in OF_TESTS:
                self.found.others[kind] += 1
            else:
                self._skip(whole, "not a policy of Kyverno, Gatekeeper or Pod Security")
        elif self._require_version(whole, group, version, source.versions):
            with self.reading(whole):
                converter = source.kinds.get(kind) or source.kinds.get(ANY)
                if converter is None:
                    refuse(f"policies of this kind are not converted: {kind}", KEEP)
                for origin in _rules(whole) if kind in OF_RULES else (whole,):
                    self._convert(origin, converter)

    def _require_version(
        self, origin: Origin, group: str, version: str, versions: tuple[str, ...]
    ) -> bool:
        """Return whether a version is known; otherwise name the document."""
        if version not in versions:
            named = f"version {version} of {group}" if group else f"version {version}"
            self._skip(origin, f"unknown {named}; known: {', '.join(versions)}")
        return version in versions

    def _convert(self, origin: Origin, kind: SourceKind) -> None:
        with self.reading(origin):
            refuse_large(origin.value)
            refuse_unknown(_without_other_rules(origin), kind.known)
            for policy in list(kind.convert(origin, self.context)):
                self.add(policy)

    def add(self, each: ConvertedPolicy) -> None:
        """Add a converted object with a name that is not taken, if it compiles."""
        names = chain([each.name], (f"{each.name}-{number}" for number in count(2)))
        try:
            bind(each.object, catalogue())
        except FaultsError as error:
            self._refuse(each.origin, *_reason(*next(iter(error.faults))))
            return
        each.title, each.description = self.context.describe(each.origin)
        each.name = next(e for e in names if self._key(each, e) not in self._taken)
        self._taken.add(self._key(each, each.name))
        self.found.converted.append(each)

    def leave_out_conflicts(self) -> None:
        """Leave out policies that could not be in force beside others."""
        self.found.converted[:], left_out = leave_out_conflicts(self.found.converted)
        self.found.unconverted += left_out

    def list_templates(self, documents: Iterable[Document]) -> None:
        """List the templates without a constraint, which judge nothing."""
        used = {str(each.value.get("kind")) for each in documents}
        for document in documents:
            if not is_describing(document.value):
                continue
            kind = self.context.kind_of_template(document.value)
            if not kind and document.value.get("kind") == "ConstraintTemplate":
                missing = "the field spec.crd.spec.names.kind is missing"
                self._skip(Origin(document, value=document.value), f"it cannot be read: {missing}")
            if kind and kind not in used:
                reason = f"no constraint of its template is among the FILEs: {kind}"
                self._refuse(Origin(document, value=document.value), reason, ADD_CONSTRAINTS)

    @staticmethod
    def _key(each: ConvertedPolicy, name: str) -> tuple[str, bool, str]:
        return each.namespace, each.is_exception, name

    def _refuse(self, origin: Origin, reason: str, near: str = "") -> None:
        name, kind = origin.metadata.get("name"), origin.document.value.get("kind")
        near = near or nearest(str(name)) or nearest(str(kind)) or OWN_RULE
        self.found.unconverted.append(Unconverted(origin, reason, near))

    def _skip(self, origin: Origin, reason: str) -> None:
        self.found.skipped.append(Unconverted(origin, reason))


def _reason(path: str, text: str) -> tuple[str, str]:
    """Return why a converted object is invalid, and what to do."""
    if match := UNKNOWN_FUNCTION.search(text):
        return f"it calls a function that Kubernetes' CEL does not have: {match[1]}()", KEEP
    if path.endswith("xpression"):
        return f"its CEL is invalid: {text}", CORRECT
    return f"the converted object is invalid: {path or 'it'}: {text}", CORRECT


def _without_other_rules(origin: Origin) -> Mapping[str, Any]:
    """Return the document of an origin, without rules beside that of the origin."""
    document: Mapping[str, Any] = origin.document.value
    if document is origin.value:
        return document
    return {**document, "spec": {**document["spec"], "rules": [origin.value]}}


def _rules(policy: Origin) -> Iterator[Origin]:
    for rule in policy.value["spec"].get("rules") or ():
        yield Origin(policy.document, str(rule.get("name", "")), rule)
