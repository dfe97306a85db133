"""An EcommercePlatform's children can be created: its name, database, containers and host are valid.

Why: the controller creates a database, Deployments, Services and an Ingress for a platform, each with its own
validation. Without this policy, a platform with invalid children would be admitted, and a component would never start.
An unset field is no violation: it has a default, or the condition Ready reports that it is missing. A database of type
postgresql is judged as the PostgreSQL object that the controller creates for it. Always in force, as part of the kind.

Allowed: `database: {type: postgresql, version: "14", storage: 1Ti}`, `host: shop.example.com`.
Denied:  a name of more than 42 characters, of 34 where backups go to a store, or with a dot;
         `database: {type: mysql, version: "14"}`, `storage: 0Gi` or `replicas: 3` of a mysql,
         `backup: {schedule: "0 25 * * *"}`; then another `database.type`, an earlier `version` of a postgresql, or
         one of a mysql that cannot open its data, such as `"8.0"` after `"9.0"`;
         `host: https://shop.example.com`; `tlsSecretName: Shop TLS`; of backend and frontend a request above its limit,
         `securityContext: {privileged: true}` alone, or a variable with both `value` and `valueFrom`.
Fix: the message names the field, its value and the allowed values.
"""

from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._component_checks import DNS_NAME, MAKES, of_containers, of_database, of_database_version, of_name
from webhook.policies._names import of_object_name


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation for each thing that could not be made."""
    yield from of_name(request, list(MAKES))
    before = request.before()
    yield from of_database(request.fields("spec.database"), before.fields("spec.database") if before else None)
    yield from of_database_version(request)
    yield from of_containers(request)
    for path in ("spec.ingressClassName", "spec.tlsSecretName"):
        yield from of_object_name(path, request.string(path))
    host = request.string("spec.host")
    if host is not None and not DNS_NAME.fullmatch(host):
        yield request.violation(
            "spec.host",
            host,
            rule="an Ingress answers for a DNS name",
            fix="write it alone, in lower case and without a wildcard, such as shop.example.com",
        )


POLICY = Policy(
    "ecommerceplatform-rules",
    validate=validate,
    kinds=("EcommercePlatform",),
    category="ecommerceplatform",
    always=True,
)
