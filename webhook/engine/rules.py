"""Rules that a policy object carries itself: how their language, which the engine does not know, comes in."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.api.match import Match
from config.api.policy import AdmissionPolicySpec
from config.documents import Document
from webhook.engine.kinds import Kind
from webhook.engine.policy import Params, Policy
from webhook.engine.request import Request

if TYPE_CHECKING:
    from webhook.engine.bound import BoundPolicy

Condition = Callable[[Request], bool]


class RuleError(Exception):
    """A rule that could not be evaluated; the text says which, and why."""


NO_PARAMS = Params.model_construct()
ANYWHERE = Match.model_construct()


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled rules of a policy object: a policy, its parameters, and whether it applies to a request at all.

    `policy` is None where the object names a built-in policy and only says under which conditions.
    """

    policy: Policy | None = None
    params: Params = NO_PARAMS
    match: Match = ANYWHERE  # where they apply, kinds by their short names
    condition: Condition | None = None
    needs: frozenset[str] = frozenset()  # what must be looked up for the condition


@dataclass(frozen=True, slots=True)
class Native:
    """One of Kubernetes' own admission policies (or a binding of one): what is in force of it, and its faults."""

    document: Document
    policies: "tuple[BoundPolicy, ...]"
    faults: tuple[tuple[str, str], ...]


Compile = Callable[[AdmissionPolicySpec, bool], Rules]
FindNative = Callable[[Iterable[Document], Sequence[Kind]], tuple[list[Native], list[Document]]]
_compilers: list[tuple[Compile, FindNative]] = []


def use_compiler(compile: Compile, find_native: FindNative) -> None:
    """Let policy objects carry rules: `compile` takes a spec, and whether it is a tenant's.

    `find_native` takes out Kubernetes' own policies, with their bindings and parameters, from the documents of a set.
    """
    _compilers[:] = [(compile, find_native)]


def find_native(documents: Iterable[Document], kinds: Sequence[Kind] = ()) -> tuple[list[Native], list[Document]]:
    """Return Kubernetes' own admission policies among the documents, and the other documents.

    `kinds` are those of their cluster that the table of kinds does not have.
    """
    return _compilers[0][1](documents, kinds) if _compilers else ([], list(documents))


def compile_rules(spec: AdmissionPolicySpec, *, in_a_namespace: bool) -> Rules:
    """Compile the rules and conditions of a policy object. FaultsError, its paths below `spec`, names every fault."""
    return _compilers[0][0](spec, in_a_namespace)
