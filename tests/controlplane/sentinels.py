"""Webhooks and policies that show which changes of such objects the API server has noticed.

It notices changes of one kind in their order, and those of policies after up to a second: once a
sentinel denies, everything that was deleted before it was created is out of force.
"""

from functools import partial
from typing import Any

from tests.controlplane.api import Api
from tests.waiting import until

API = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NAME = "sentinel"
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["configmaps"],
}
REMOVE_ABSENT = "[JSONPatch{op: 'remove', path: '/data/absent'}]"  # an error, which denies


def await_admission(api: Api) -> None:
    """Wait until the webhooks and policies that are in force are those that exist.

    The sentinels remain; each denies only ConfigMaps with its label.
    """
    for plural, body in _sentinels():
        code, answer = api.request("POST", f"{API}/{plural}", {"metadata": {"name": NAME}, **body})
        assert code == 201, f"{plural}: {code} {answer.decode()}"
    for label in ("mutating-webhook", "mutating-policy", "validating-webhook", "validating-policy"):
        until(partial(_is_denied, api, label), every=0.1)


def _is_denied(api: Api, label: str) -> bool:
    probe = {"metadata": {"name": NAME, "labels": {NAME: label}}}
    return api.request("POST", f"{CONFIG_MAPS}?dryRun=All", probe)[0] != 201


def _sentinels() -> list[tuple[str, dict[str, Any]]]:
    """Return resource and fields of each sentinel."""
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": REMOVE_ABSENT}}
    mutation = {"mutations": [patch], "reinvocationPolicy": "Never"}
    validation = {"validations": [{"expression": "false"}]}
    return [
        ("mutatingwebhookconfigurations", _webhook("mutating-webhook")),
        ("validatingwebhookconfigurations", _webhook("validating-webhook")),
        ("mutatingadmissionpolicies", _policy("mutating-policy", **mutation)),
        ("mutatingadmissionpolicybindings", _binding()),
        ("validatingadmissionpolicies", _policy("validating-policy", **validation)),
        ("validatingadmissionpolicybindings", _binding(validationActions=["Deny"])),
    ]


def _webhook(label: str) -> dict[str, Any]:
    webhook = {
        "name": "sentinel.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},  # where nothing listens
        "rules": [RULE],
        "objectSelector": {"matchLabels": {NAME: label}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"webhooks": [webhook]}


def _policy(label: str, **rules: Any) -> dict[str, Any]:
    selector = {"matchLabels": {NAME: label}}
    constraints = {"resourceRules": [RULE], "objectSelector": selector}
    return {"spec": {"matchConstraints": constraints, **rules}}


def _binding(**actions: Any) -> dict[str, Any]:
    return {"spec": {"policyName": NAME, **actions}}
