"""An AppConfig can be rendered into a ConfigMap.

Why: without this policy, an AppConfig with an invalid template or ConfigMap key would be admitted
and never take effect. Always in force, as part of the kind: it reports at admission what the status
would report later.

Allowed: `url: "http://{{ application }}.{{ namespace }}"`, with the variables environment,
         application and namespace and the filters capitalize, lower, replace, title, trim and
         upper; `{{ "debug" if environment == "dev" else "info" }}`; `values` with a value for the
         environment or a default, or, with `environment: from-namespace`, for every environment.
Denied:  `{{ password }}`, `{{ 1 + 1 }}`; a key such as `a/b`, or one in two of `config`, `values`
         and `secrets`; `values` with neither; a reference in `secrets` without name or key; values
         of more than 1 MiB altogether; an application that is not a valid prefix of a ConfigMap's
         name. Templates of other environments are checked, too.
Fix: correct the template or the key. Put literal braces between {% raw %} and {% endraw %}.
See: https://jinja.palletsprojects.com/en/stable/templates/.
"""

from config.api.appconfig import FROM_NAMESPACE
from config.config_maps import ENVIRONMENTS, secret_faults, settings
from webhook.engine import Params, Policy, Request, Violation, Violations

STANDS_IN = "application"  # used if the AppConfig does not set one


def validate(request: Request, params: Params) -> Violations:
    """Yield one violation for each field from which no ConfigMap can be rendered."""
    spec = request.fields("spec")
    application = spec.string("application") or STANDS_IN
    environment = spec.string("environment") or "dev"
    values = {key: value.texts("") for key, value in spec.entries("values")}
    config, namespace = spec.texts("config"), request.attributes.namespace
    # A namespace can be labelled later: the object is to be right in every environment then.
    possible = ENVIRONMENTS if environment == FROM_NAMESPACE else (environment,)
    faults = dict.fromkeys(
        fault
        for environment in possible
        for fault in settings(application, environment, namespace, config, values)[1]
    )
    references = {
        key: {field: value.string(field) or "" for field in ("name", "key")}
        for key, value in spec.entries("secrets")
    }
    faults |= dict.fromkeys(secret_faults(references, {*config, *values}))
    for path, text in faults:
        yield Violation(path, found="cannot build the ConfigMap", rule=text, fix="correct it")


POLICY = Policy(
    "appconfig-rules", validate=validate, kinds=("AppConfig",), category="appconfig", always=True
)
