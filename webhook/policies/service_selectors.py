"""No two Services of a namespace have the same selector.

Why: the second is usually a copy with a forgotten selector: its requests reach the pods of the
first.

Judged: the selector of a Service against those of the other Services in its namespace, as the
webhook knows them at that moment. Services without a selector are ignored. A headless Service
(`clusterIP: None`), such as that of a StatefulSet, is compared with other headless ones only.

Allowed: a selector that no other Service of the namespace has.
Denied:  the same selector, in any order.
Fix: correct the selector, or use the existing Service.
"""

from webhook.engine import Fields, Params, Policy, Request, Violation, Violations
from webhook.engine.look_ups import read_each

SERVICES = "services"  # look-up: the Service objects of the namespace


def validate(request: Request, params: Params) -> Violations:
    """Yield a violation if another Service has the same selector."""
    selector = request.texts("spec.selector")
    own = _identity(request)
    for name, other in read_each(request.lookup(SERVICES), _read_selector) if selector else ():
        if name != request.name and other == own:
            labels = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
            found = f"{labels} is also the selector of Service {name}"
            rule = "a selector must belong to one Service of its namespace"
            yield Violation(
                "spec.selector", found, rule, "correct it, or use the Service that has it"
            )


def _read_selector(service: Fields) -> tuple[str | None, tuple[dict[str, str], bool]]:
    return service.string("metadata.name"), _identity(service)


def _identity(service: Fields) -> tuple[dict[str, str], bool]:
    """Return the selector of a Service, and whether it is headless."""
    return service.texts("spec.selector"), service.string("spec.clusterIP") == "None"


POLICY = Policy(
    "service-selectors",
    validate=validate,
    kinds=("Service",),
    category="network",
    severity="low",
    needs=(SERVICES,),
)
