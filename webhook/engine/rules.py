"""Rules that a policy object carries itself: how their language, which the engine does not know, comes in."""

from collections.abc import Callable
from dataclasses import dataclass

from config.api.policy import AdmissionPolicySpec, Match
from webhook.engine.policy import Params, Policy
from webhook.engine.request import Request

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


Compile = Callable[[AdmissionPolicySpec, bool], Rules]
_compilers: list[Compile] = []


def use_compiler(compile: Compile) -> None:
    """Let policy objects carry rules: `compile` takes a spec, and whether it is a tenant's."""
    _compilers[:] = [compile]


def compile_rules(spec: AdmissionPolicySpec, *, in_a_namespace: bool) -> Rules:
    """Compile the rules and conditions of a policy object. FaultsError, its paths below `spec`, names every fault."""
    return _compilers[0](spec, in_a_namespace)
