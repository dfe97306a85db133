"""A policy object that is let in can be used.

Why: whoever writes a policy should learn of a mistake at once, not from a policy that is silently not in force. Always
in force: it judges Gatewright's own kinds, by the code that puts them in force.

Judged: ClusterAdmissionPolicy, AdmissionPolicy and PolicyException. The namespace of Gatewright itself is never sent to
the webhook; there the object's status says what is wrong.

Allowed: a policy that exists, with parameters that it has, of the right type.
Denied:  `policy: replica-limit`; `params: {maximun: 3}`; a `kinds` that the policy does not look at.
Fix: `gatewright explain` lists the policies, `gatewright explain POLICY` its parameters.
"""

from collections.abc import Iterator

from config.faults import FaultsError
from webhook.engine import Params, Policy, Request, Violation
from webhook.engine.kinds import POLICY_KINDS
from webhook.engine.policy_set import bind, document_of


def validate(request: Request, params: Params) -> Iterator[Violation]:
    """Yield one violation for each fault."""
    from webhook.policies import catalogue  # the catalogue holds this module too

    request.fields("metadata")
    try:
        bind(document_of(request.value), catalogue())
    except FaultsError as error:
        for path, text in error.faults:
            rule = f"it could not come into force as a {request.kind}"
            yield Violation(
                path or "spec", found=text, rule=rule, fix="correct it; `gatewright explain` lists what there is"
            )


POLICY = Policy(
    "policy-objects", validate=validate, kinds=POLICY_KINDS, category="gatewright", severity="high", always=True
)
