"""The compiled rules of a policy object, apart from CEL, which most policy sets do not need."""

from dataclasses import dataclass

from config.api.match import MatchSpec
from webhook.engine.policy import Params, Policy, RequestPredicate

NO_PARAMS = Params.model_construct()
ANYWHERE = MatchSpec.model_construct()


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled rules of a policy object: a policy, parameters, and when it applies.

    `policy` is None if the object names a built-in policy and only adds match conditions.
    """

    policy: Policy | None = None
    params: Params = NO_PARAMS
    match: MatchSpec = ANYWHERE  # where they apply, kinds by their short names
    condition: RequestPredicate | None = None
    needs: frozenset[str] = frozenset()  # what must be looked up for the condition
    depends_on_sender: bool = False  # whether the condition depends on the user or the operation
