"""Translate the names of kinds in other tools' policies to those of `match.kinds`."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from config.documents import Document
from gatewright.tools.migrate.results import EVERY_KIND, OMIT, refuse
from webhook.engine.kinds import OWN_KINDS, Kind, plural
from webhook.policy_sets.kind_names import known_kinds

UNKNOWN = "its kind is unknown, since no CustomResourceDefinition of it is among the FILEs"
ADD_DEFINITION = "add its CustomResourceDefinition to the FILEs"
GONE = ("extensions",)  # groups of Kubernetes that it serves no longer
VERSION = re.compile(r"v\d+((alpha|beta)\d+)?|\*")


class KindNames:
    """The built-in kinds, and those of CustomResourceDefinitions among the documents."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        """Read the CustomResourceDefinitions."""
        self._built_in = list(known_kinds().values())
        self._kinds = list(self._built_in)
        # Another tool's policy about `Backup` is not about that of Gatewright.
        self._foreign = [each for each in self._built_in if each not in OWN_KINDS]
        for document in documents:
            if document.value.get("kind") == "CustomResourceDefinition":
                with suppress(KeyError, TypeError):
                    defined = _define(document.value["spec"])
                    self._kinds.append(defined)
                    self._foreign.append(defined)

    def by_selector(self, text: str) -> tuple[str, str]:
        """Return the kind and subresource of Kyverno's notation group/version/Kind/sub."""
        *before, last = text.split("/")
        kind, _, subresource = last.partition(".")
        if before and not VERSION.fullmatch(before[-1]):
            if before[-1][:1].isupper():
                *before, kind, subresource = *before[:-1], before[-1], last
            else:
                refuse(f"the kind {text} is not written as group/version/Kind")
        if len(before) > 1 and VERSION.fullmatch(before[0]):
            refuse(f"Kyverno reads the kind {text} as a kind and its subresource", OMIT)
        version = before[-1] if before else "*"
        group = before[0] if len(before) > 1 else "*"
        return self.spell(group, version, kind), subresource

    def spell(self, group: str, version: str, kind: str) -> str:
        """Return the name of a kind in `match.kinds`; * stands for any group or version."""
        if "*" in kind or "?" in kind:
            refuse(f"policies of Gatewright name their kinds; it matches every kind: {kind}",
                   EVERY_KIND)  # fmt: skip
        kinds = self._foreign if group == "*" else self._kinds
        candidates = [each for each in kinds if each.kind == kind and group in ("*", each.group)]
        if candidates:
            return self._word(candidates[0], version)
        if group == "*" or version == "*":
            refuse(f"{UNKNOWN}: {kind}", ADD_DEFINITION)
        return f"{group}/{version}/{kind}".removeprefix("/")

    def has(self, group: str, kind: str) -> bool:
        """Return whether a kind is known."""
        return any((each.group, each.kind) == (group, kind) for each in self._kinds)

    def is_gone(self, group: str, kind: str) -> bool:
        """Return whether Kubernetes serves a kind, but not in this group of its own."""
        is_own = group in GONE or any(group == each.group for each in self._built_in)
        is_elsewhere = any(kind == each.kind for each in self._built_in)
        return is_own and is_elsewhere and not self.has(group, kind)

    def of_resource(self, group: str, version: str, resource: str) -> str:
        """Return the kind of a resource."""
        kinds = self._foreign if group == "*" else self._kinds
        candidates = [
            kind for kind in kinds if kind.plural == resource and group in ("*", kind.group)
        ]
        if not candidates:
            refuse(f"{UNKNOWN}: {resource}.{group}", ADD_DEFINITION)
        return self._word(candidates[0], version)

    def code(self, words: Iterable[str]) -> str:
        """Return the type that objects of all these kinds have; "" if they differ."""
        from config.schemas import root_type

        types = set()
        for word in words:
            kind = next((e for e in self._kinds if self._word(e, "*") == word), None)
            version = kind.versions[-1] if kind else ""
            api = f"{kind.group}/{version}".removeprefix("/") if kind else ""
            types.add(root_type(api, kind.kind) or "" if kind else "")
        return types.pop() if len(types) == 1 else ""

    def _word(self, kind: Kind, version: str) -> str:
        first = next(each for each in self._kinds if each.kind == kind.kind)
        if first is kind and (kind.group, kind.kind) in known_kinds():
            return kind.kind
        served = version if version != "*" else kind.versions[-1]
        if kind.plural == plural(kind.kind):
            return f"{kind.group}/{served}/{kind.kind}"
        return f"{kind.plural}.{kind.group}/{served}/{kind.kind}"


def _define(spec: Mapping[str, Any]) -> Kind:
    versions = tuple(each["name"] for each in spec["versions"])
    names = spec["names"]
    return Kind(spec["group"], names["kind"], names["plural"], versions,
                namespaced=spec["scope"] == "Namespaced")  # fmt: skip
