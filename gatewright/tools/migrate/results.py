"""The results of a conversion: policy objects, and rules without a known equivalent."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from config.api.policy import API_VERSION
from config.documents import Document
from kube.resource import title
from webhook.policy_sets.bound_objects import MAX_POLICY_BYTES

# What to do instead, where no equivalent policy is known.
DESCRIPTION = "kubernetes.io/description"
OWN_RULE = "a rule of your own in CEL"
EVERY_KIND = "a rule in CEL with the kinds that you use"
ADD_MATCH = "add a `match` with its kinds to the original, and convert it again"
MUTATION = "a mutation in CEL, `security-defaults` or `resource-defaults`"
AS_IT_IS = "a ValidatingAdmissionPolicy, which `gatewright check` judges as it is"
CORRECT = "correct the original, and convert it again"
KEEP = "the original tool, for this policy"
SPLIT = "several smaller rules"
OMIT = "nothing: omit it"


class NotEqualError(ValueError):
    """No policy of Gatewright is known to decide the same."""

    def __init__(self, reason: str, nearest: str = "") -> None:
        """Take the reason and the nearest equivalent."""
        super().__init__(reason)
        self.nearest = nearest


def refuse(reason: str, nearest: str = "") -> NoReturn:
    """Raise NotEqualError."""
    raise NotEqualError(reason, nearest)


def refuse_large(value: Mapping[str, Any]) -> None:
    """Refuse a rule that is too large for a policy object, before it is converted."""
    size = len(json.dumps(value, default=str))
    if size > MAX_POLICY_BYTES:
        refuse(f"it has {size:,} bytes; a policy object has at most {MAX_POLICY_BYTES:,}", SPLIT)


def texts(value: Any) -> list[str]:
    """Return a list of texts; a missing one is empty. Raises TypeError for any other value."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TypeError
    return value


def slug(text: str) -> str:
    """Return a text as part of an object's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class Origin:
    """A document, or one rule of it: the name and the value of the rule."""

    document: Document
    rule: str = ""
    value: Mapping[str, Any] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata; empty if it is not a map."""
        metadata = self.document.value.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def title(self) -> str:
        """Kind, name and rule."""
        rule = f", rule {self.rule}" if self.rule else ""
        kind, metadata = str(self.document.value.get("kind")), self.metadata
        return f"{title(kind, metadata.get('namespace'), metadata.get('name', ''))}{rule}"


@dataclass(slots=True)
class ConvertedPolicy:
    """A policy object or an exception, its origin, and notes on differences.

    `title` and `description` are those of the original.
    """

    origin: Origin
    spec: dict[str, Any]
    name: str
    namespace: str = ""
    is_exception: bool = False
    notes: list[str] = field(default_factory=list)
    title: str = ""
    description: str = ""

    @property
    def object(self) -> dict[str, Any]:
        """The object, as written to a file."""
        kind = "AdmissionPolicy" if self.namespace else "ClusterAdmissionPolicy"
        metadata: dict[str, Any] = {"name": self.name}
        if self.namespace:
            metadata["namespace"] = self.namespace
        if self.description:
            metadata["annotations"] = {DESCRIPTION: self.description}
        return {
            "apiVersion": API_VERSION,
            "kind": "PolicyException" if self.is_exception else kind,
            "metadata": metadata,
            "spec": self.spec,
        }


@dataclass(frozen=True, slots=True)
class Unconverted:
    """A document or rule without an equivalent, the reason, and the nearest policy."""

    origin: Origin
    reason: str
    nearest: str = ""

    @property
    def sort(self) -> str:
        """The reason without the detail of this rule, which follows a colon."""
        return self.reason.partition(": ")[0]
