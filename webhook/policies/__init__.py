"""The policies that Gatewright knows: one module each, found by being here."""

import importlib
import pkgutil
from functools import cache

from webhook.engine import Policy


@cache
def catalogue() -> dict[str, Policy]:
    """Return every policy by name. LookupError where a module is not named after its policy."""
    policies: dict[str, Policy] = {}
    for module in pkgutil.iter_modules(__path__):
        policy: Policy = importlib.import_module(f"{__name__}.{module.name}").POLICY
        if policy.name != module.name.replace("_", "-"):
            raise LookupError(f"{module.name}.py declares the policy {policy.name!r}")
        policies[policy.name] = policy
    return policies
