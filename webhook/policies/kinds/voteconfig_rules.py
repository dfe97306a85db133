"""A VoteConfig can be rendered into a ConfigMap.

Why: without this policy, a VoteConfig with duplicate keys or an invalid id would be admitted and
never take effect. Always in force, as part of the kind: it reports at admission what the status
would report later. v1alpha1 is converted to v1 and then judged; messages name the fields of
v1alpha1.

Allowed: options with the ids `cats` and `dogs-2`.
Denied:  two options with the id `cats`, or `a-b` beside `A.b`: both would be `OPTION_A_B`; the id
         `big cats`; more than 1 MiB altogether; a name of more than 246 characters.
Fix: give each option a unique id: letters, digits, `-`, `_` and `.`, 63 at most.
"""

from config.api.voteconfig import Option
from config.config_maps import config_map_name, name_fault, votes
from webhook.engine import Params, Policy, Request, Violation, Violations


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each field from which no ConfigMap can be rendered."""
    spec = request.fields("spec")
    question = spec.string("poll.question") or spec.string("question") or ""
    options = [
        Option(
            id=option.string("id"),
            label=option.string("label"),
            description=option.string("description"),
        )
        for option in spec.each("options")
    ]
    name = request.string("metadata.name")
    faults = list(name_fault("metadata.name", config_map_name(name))) if name else []
    for path, text in [*faults, *votes(question, options)[1]]:
        yield Violation(path, found="cannot build the ConfigMap", rule=text, fix="correct it")


POLICY = Policy(
    "voteconfig-rules", validate=validate, kinds=("VoteConfig",), category="voteconfig", always=True
)
