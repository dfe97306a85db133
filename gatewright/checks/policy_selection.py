"""The policies of a set that one run of `check` judges by: `--select` and `--ignore`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from config.documents import Document, DocumentError
from config.faults import did_you_mean


@dataclass(frozen=True, slots=True)
class PolicySelection:
    """Names of policies; all are selected if none is."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()

    def of(self, documents: Iterable[Document]) -> list[Document]:
        """Return the documents without the policies that are not selected, and their bindings.

        Raises DocumentError if a name is that of no policy.
        """
        documents = [*documents]
        names = {name for each in documents if (name := _name(each.value))}
        for option, given in (("--select", self.select), ("--ignore", self.ignore)):
            for name in given:
                if name not in names:
                    hint = did_you_mean(name, names)
                    raise DocumentError(f"{option} {name}: no policy of this name{hint}")
        left_out = {*self.ignore, *(names - {*self.select} if self.select else ())}
        return [each for each in documents if _name(each.value) not in left_out]


def _name(value: Any) -> str | None:
    """Return the name of a policy, or of the policy that a binding is for; None for the rest."""
    match value:
        case {"kind": "PolicyException"}:
            return None
        case {"kind": str(kind), "spec": {"policyName": str(name)}} if kind.endswith("Binding"):
            return name
        case {"kind": str(kind), "metadata": {"name": str(name)}} if kind.endswith("Policy"):
            return name
    return None
