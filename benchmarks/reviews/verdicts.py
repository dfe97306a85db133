"""Send one review to one server, and compare the answer with the expected one."""

import base64
import http.client
import json
import re
import ssl
from typing import Any

import jsonpatch

from benchmarks.reviews.bodies import Body

LINE = re.compile(r"^- ([\w-]+): (\S+): ", re.MULTILINE)  # of a denial: the policy and the field
TIMEOUT = 60.0


def ask(port: int, trust: ssl.SSLContext, body: Body) -> dict[str, Any]:
    """Return the response of the server on `port`.

    Raises OSError or HTTPException if it does not answer.
    """
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT, context=trust)
    try:
        connection.request("POST", body.path, body.review, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise http.client.HTTPException(f"{body.name}: HTTP {answer.status}: {content[:200]!r}")
        return response_of(content)
    finally:
        connection.close()


def response_of(content: bytes) -> dict[str, Any]:
    """Return the response in an AdmissionReview."""
    return dict(json.loads(content)["response"])


def violations(response: dict[str, Any]) -> frozenset[tuple[str, str]]:
    """Return policy and field of each violation that a denial lists."""
    return frozenset(LINE.findall(response.get("status", {}).get("message", "")))


def fault(response: dict[str, Any], body: Body) -> str:
    """Return the difference from the expected answer; "" if there is none."""
    denied = bool(body.violations) or (not body.listed and not body.is_patched)
    if response["allowed"] == denied:
        return f"{body.name}: allowed is {response['allowed']}"
    if body.listed and (found := violations(response)) != body.violations:
        return f"{body.name}: violations are {sorted(found)}, not {sorted(body.violations)}"
    if body.is_patched != ("patch" in response):
        return f"{body.name}: {'no patch' if body.is_patched else 'a patch'}"
    return ""


def patched(response: dict[str, Any], body: Body) -> Any:
    """Return the patched object, without the empty fields that Go's structs add to it."""
    operations = base64.b64decode(response["patch"]) if "patch" in response else b"[]"
    return _without_empty(jsonpatch.apply_patch(body.object, json.loads(operations)))


def _without_empty(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_empty(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_empty(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in (None, {})}
