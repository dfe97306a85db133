"""Random values of objects that are created once, so that no plan ever holds a secret."""

import base64
import secrets
from collections.abc import Mapping

from controller.runtime.plan import Object, Random


def generated(desired: Object, generate: Mapping[str, Random]) -> Object:
    """Return the object with random values at the paths of `generate` (a Secret's `data` in base64)."""
    filled = dict(desired)
    for path, random in generate.items():
        field, _, key = path.partition(".")
        value = secrets.token_urlsafe(random.length)[: random.length]
        if field == "data":
            value = base64.b64encode(value.encode()).decode()
        filled[field] = {**filled.get(field, {}), key: value}
    return filled
