"""An AppStack's children can be created: its name, database and containers are valid.

Why: without this policy, an AppStack with invalid children would be admitted, and a component would never start. An
unset field is no violation: it has a default, or the condition Ready reports that it is missing. A database of type
postgresql is judged as the PostgreSQL object that the controller creates. Always in force, as part of the kind.

Allowed: `database: {type: mysql, version: "8.4", storage: 20Gi}`; a name of 54 characters where there is no database.
Denied:  a name with a dot, or of more than 42 characters where there is a database, of 34 where its backups go to a
         store; `version: "14"` or `replicas: 3` of a mysql; an update to another `database.type`, to an earlier
         `version` of a postgresql, or to a `version` of a mysql that cannot open its data, such as `"8.0"` after
         `"9.0"`; in backend and frontend a request above its limit, `securityContext: {privileged: true}` alone, or a
         variable with both `value` and `valueFrom`.
Fix: the message names the field, its value and the allowed values.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._component_checks import judge_components


def validate(request: Request, params: Params) -> Violations:
    """Return one violation for each fault of a component that is set."""
    return judge_components(request)


POLICY = Policy("appstack-rules", validate=validate, kinds=("AppStack",), category="appstack", always=True)
