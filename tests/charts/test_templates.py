"""What can be seen without helm: the schema accepts values.yaml, and templates read each value."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from jsonschema import Draft7Validator

from tests.charts.rendered import CHART

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
TEMPLATES = {
    file.name: file.read_text() for file in (CHART / "templates").glob("*") if file.is_file()
}
DEPLOYMENTS = ("webhook-deployment.yaml", "controller-deployment.yaml")
# Mappings that templates copy whole.
PASSED_ON = {
    "affinity",
    "containerSecurityContext",
    "labels",
    "livenessProbe",
    "podSecurityContext",
    "readinessProbe",
    "resources",
}
SCHEMA_ALONE = {"extraNames"}  # allows names in policies.objects
IN_A_LOOP = {"podDisruptionBudget"}  # its template renders one object for each Deployment


def names(values: dict[str, Any]) -> Iterator[str]:
    """Yield the name of each value that a template has to read by itself."""
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in PASSED_ON:
            yield from names(value)
        elif name not in SCHEMA_ALONE:
            yield name


def reads(file: str, setting: str) -> bool:
    """Return whether a template reads a setting of a Deployment."""
    return re.search(rf"settings\.{setting}\b", TEMPLATES[file]) is not None


def test_the_schema_accepts_values_yaml() -> None:
    """Each value has its type in values.schema.json."""
    validator = Draft7Validator(SCHEMA)
    errors = [error.message for error in validator.iter_errors(VALUES)]
    assert errors == [], (
        "give each value its type in values.schema.json, a value of both Deployments in "
        "$defs/settings alone; then run `make manifests`"
    )


def test_a_template_reads_each_value() -> None:
    """Each value of values.yaml is read by its name."""
    text = "".join(TEMPLATES.values())
    unread = {name for name in names(VALUES) if not re.search(rf"\.{name}\b", text)}
    assert unread == set(), "read these values in a template, or remove them from values.yaml"


def test_both_deployments_read_each_of_their_settings() -> None:
    """A setting of both Deployments is read in a definition that they share, or in each of them."""
    settings = SCHEMA["$defs"]["settings"]["properties"]
    unread = {
        name
        for name in settings.keys() - IN_A_LOOP
        if not reads("_helpers.tpl", name)
        and not all(reads(deployment, name) for deployment in DEPLOYMENTS)
    }
    assert unread == set(), (
        "read these in gatewright.pod or gatewright.container of _helpers.tpl, or in both "
        f"{' and '.join(DEPLOYMENTS)}"
    )
