"""A Widget's name can be the label of its pods.

Why: the Deployment that a Widget makes finds its pods by a label with the Widget's name, and the value of a label is
shorter than a name may be. Always in force: it belongs to the kind.

Allowed: `gears`, `gears.eu`.
Denied:  a name of more than 63 characters.
Fix: choose a shorter name.
"""

from collections.abc import Iterator

from webhook.engine import Params, Policy, Request, Violation
from webhook.policies._names import too_long

LIMIT = 63


def validate(request: Request, params: Params) -> Iterator[Violation]:
    """Yield a violation where the pods could not be labelled."""
    yield from too_long(request, LIMIT, f"its pods carry the name as a label, which has a limit of {LIMIT} characters")


POLICY = Policy("widget-names", validate=validate, kinds=("Widget",), category="widget", always=True)
