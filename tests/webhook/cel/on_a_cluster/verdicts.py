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
    """An expression of the corpus, after the variables of its policy; a result other than a bool is shown as text."""

    number: int
    expression: str
    variables: tuple[tuple[str, str], ...] = ()

    def validation(self, *, as_text: bool) -> JsonObject:
        """Return the validation of a ValidatingAdmissionPolicy."""
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
    return [_line(number, line) for number, line in enumerate(lines)]


def _line(number: int, line: str) -> Line:
    """Read `a = EXPRESSION ;; b = EXPRESSION ;; EXPRESSION`."""
    *variables, expression = line.split(" ;; ")
    named = (each.split(" = ", 1) for each in variables)
    return Line(number, expression, tuple((name, value) for name, value in named))


def policy(
    name: str, validations: list[JsonObject], variables: tuple[tuple[str, str], ...] = ()
) -> JsonObject:
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
            "variables": [{"name": each, "expression": value} for each, value in variables],
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


def batches(accepted: dict[Line, JsonObject]) -> Iterator[JsonObject]:
    """Yield policies with the validations of lines; a line with variables gets a separate policy."""
    plain = [validation for line, validation in accepted.items() if not line.variables]
    for start in range(0, len(plain), AT_ONCE):
        yield policy(f"batch-{start // AT_ONCE}", plain[start : start + AT_ONCE])
    for line, validation in accepted.items():
        if line.variables:
            yield policy(f"variables-{line.number}", [validation], line.variables)


def in_batch(value: JsonObject, name: str) -> JsonObject:
    """Return an object with the label of a batch."""
    copied: JsonObject = json.loads(json.dumps(value))
    copied["metadata"].setdefault("labels", {})["batch"] = name
    return copied
