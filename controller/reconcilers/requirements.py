"""Resources of containers whose image Gatewright chooses: a default for each unset amount."""

from config.api.core import ResourceRequirements
from config.quantities import parse_quantity
from kube.resource import JsonObject


def complete_requirements(given: ResourceRequirements | None, default: JsonObject) -> JsonObject:
    """Return the requirements, with `default` for the amounts that are unset.

    A request may not exceed its limit: a default limit is raised to the user's request, and a
    default request is lowered to the user's limit.
    """
    chosen = {} if given is None else given.to_api()
    requests, limits = (dict(chosen.get(each) or {}) for each in ("requests", "limits"))
    both = {
        "requests": {**default["requests"], **requests},
        "limits": {**default["limits"], **limits},
    }
    for name in both["requests"].keys() & both["limits"].keys():
        if _amount(both["requests"][name]) > _amount(both["limits"][name]):
            if name not in limits:
                both["limits"][name] = both["requests"][name]
            elif name not in requests:
                both["requests"][name] = both["limits"][name]
    return {**chosen, **both}


def _amount(quantity: int | str) -> int:
    return parse_quantity(str(quantity)).millis
