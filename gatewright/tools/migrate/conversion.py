"""Convert documents to policy objects; each is compiled before it counts as converted."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from typing import NamedTuple

from config.documents import Document
from config.faults import FaultsError
from gatewright.tools.migrate.cel_policies import convert_cel_policy
from gatewright.tools.migrate.context import KINDS, Context
from gatewright.tools.migrate.exceptions import convert_exception
from gatewright.tools.migrate.gatekeeper import convert_constraint
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.kyverno import convert_rule
from gatewright.tools.migrate.mutators import convert_mutator
from gatewright.tools.migrate.other_libraries import nearest
from gatewright.tools.migrate.pod_security import convert_labels
from gatewright.tools.migrate.results import (
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

Converter = Callable[[Origin, Context], Iterable[ConvertedPolicy]]
OF_RULES = ("ClusterPolicy", "Policy")  # kinds whose rules are converted one by one
ANY = "*"


class Source(NamedTuple):
    """An API group: its known versions, and the converters by kind (`*`: any kind)."""

    versions: tuple[str, ...]
    converters: Mapping[str, Converter]


SOURCES = {
    "kyverno.io": Source(
        ("v1", "v2beta1", "v2"),
        {
            "ClusterPolicy": convert_rule,
            "Policy": convert_rule,
            "PolicyException": convert_exception,
        },
    ),
    "policies.kyverno.io": Source(
        ("v1alpha1", "v1beta1", "v1"),
        {
            "ValidatingPolicy": convert_cel_policy,
            "NamespacedValidatingPolicy": convert_cel_policy,
            "MutatingPolicy": convert_cel_policy,
            "PolicyException": convert_exception,
        },
    ),
    "constraints.gatekeeper.sh": Source(("v1alpha1", "v1beta1", "v1"), {ANY: convert_constraint}),
    "mutations.gatekeeper.sh": Source(("v1alpha1", "v1beta1", "v1"), {ANY: convert_mutator}),
}


@dataclass(slots=True)
class Migration:
    """The converted objects, the unconverted rules, and the documents that could not be read."""

    converted: list[ConvertedPolicy] = field(default_factory=list)
    unconverted: list[Unconverted] = field(default_factory=list)
    skipped: list[Unconverted] = field(default_factory=list)


def migrate(documents: Iterable[Document], expires: str = "") -> Migration:
    """Convert the policies among documents; exceptions expire at `expires`."""
    documents = list(documents)
    run = _Run(Context(KindNames(documents), expires, converted=[]))
    for document in documents:
        with run.reading(Origin(document)):
            run.context.add(document.value)
    # Exceptions name converted policies.
    for document in sorted(documents, key=lambda each: each.value.get("kind") == "PolicyException"):
        run.convert(document)
    for each in convert_labels(documents):
        run.add(each)
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
            self._refuse(origin, f"its CEL is invalid: {error}")
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
            if kind not in KINDS:
                self._skip(whole, "not a policy of Kyverno, Gatekeeper or Pod Security")
        elif version not in source.versions:
            self._skip(
                whole, f"unknown version {version} of {group}; known: {', '.join(source.versions)}"
            )
        else:
            with self.reading(whole):
                convert = source.converters.get(kind) or source.converters.get(ANY)
                if convert is None:
                    refuse(f"policies of the kind {kind} are not converted", KEEP)
                for origin in _rules(whole) if kind in OF_RULES else (whole,):
                    self._convert(origin, convert)

    def _convert(self, origin: Origin, convert: Converter) -> None:
        with self.reading(origin):
            refuse_large(origin.value)
            for each in list(convert(origin, self.context)):
                self.add(each)

    def add(self, each: ConvertedPolicy) -> None:
        """Add a converted object with a name that is not taken, if it compiles."""
        names = chain([each.name], (f"{each.name}-{number}" for number in count(2)))
        try:
            bind(each.object, catalogue())
        except FaultsError as error:
            path, text = next(iter(error.faults))
            self._refuse(each.origin, f"the converted object is invalid: {path or 'it'}: {text}")
            return
        each.name = next(e for e in names if self._key(each, e) not in self._taken)
        self._taken.add(self._key(each, each.name))
        self.found.converted.append(each)

    @staticmethod
    def _key(each: ConvertedPolicy, name: str) -> tuple[str, bool, str]:
        return each.namespace, each.is_exception, name

    def _refuse(self, origin: Origin, reason: str, near: str = "") -> None:
        name, kind = origin.metadata.get("name"), origin.document.value.get("kind")
        near = near or nearest(str(name)) or nearest(str(kind)) or OWN_RULE
        self.found.unconverted.append(Unconverted(origin, reason, near))

    def _skip(self, origin: Origin, reason: str) -> None:
        self.found.skipped.append(Unconverted(origin, reason))


def _rules(policy: Origin) -> Iterator[Origin]:
    for rule in policy.value["spec"].get("rules") or ():
        yield Origin(policy.document, str(rule.get("name", "")), rule)
