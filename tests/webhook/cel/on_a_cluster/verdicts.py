"""Verdicts of the API server and of Gatewright on each expression of the corpus."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kube.resource import JsonObject

CORPUS = Path(__file__).parent / "corpus.txt"
GROUP = "admissionregistration.k8s.io/v1"
AT_ONCE = (
    12  # validations of one policy: the API server shortens warnings of more than 4,096 characters
)


@dataclass(frozen=True)
class Line:
    """An expression of the corpus; one that is not a bool is shown as text."""

    number: int
    expression: str

    def validation(self, *, as_text: bool) -> JsonObject:
        """Return it as a validation of a ValidatingAdmissionPolicy."""
        if not as_text:
            return {"expression": self.expression, "message": f"#{self.number}"}
        text = f"'%s'.format([{self.expression}])"
        return {
            "expression": f"{text} == 'never'",
            "messageExpression": f"'#{self.number} ' + {text}",
        }


def corpus() -> list[Line]:
    """Return the expressions of the corpus."""
    lines = [line for line in CORPUS.read_text().splitlines() if line and not line.startswith("#")]
    return [Line(number, line) for number, line in enumerate(lines)]


def policy(name: str, validations: list[JsonObject]) -> JsonObject:
    """Return a ValidatingAdmissionPolicy for objects with the label `batch: NAME`."""
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["*"],
    }
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [rule],
                "objectSelector": {"matchLabels": {"batch": name}},
            },
            "validations": validations,
        },
    }


def binding(name: str) -> JsonObject:
    """Return the binding of a policy, which warns."""
    return {
        "apiVersion": GROUP,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Warn"]},
    }


def batches(validations: list[JsonObject]) -> Iterator[tuple[str, list[JsonObject]]]:
    """Yield names of policies with their validations."""
    for start in range(0, len(validations), AT_ONCE):
        yield f"batch-{start // AT_ONCE}", validations[start : start + AT_ONCE]


def in_batch(value: JsonObject, name: str) -> JsonObject:
    """Return an object with the label of a batch."""
    copied: JsonObject = json.loads(json.dumps(value))
    copied["metadata"].setdefault("labels", {})["batch"] = name
    return copied
