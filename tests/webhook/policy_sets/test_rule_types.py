"""CEL rules are checked against the types of the kinds that they match; no right rule is an error."""

from typing import Any

import pytest

from config.faults import FaultsError
from config.schemas import CustomTypes
from webhook.engine import BoundPolicy
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

POD = "object.spec.template.spec"
REPLICA = (
    "spec.validations[0].expression: line 1, column 13: undefined field 'replica' of "
    "'DeploymentSpec'; did you mean \"replicas\"?"
)


def bound(*expressions: str, kinds: tuple[str, ...] = ("Deployment",), **more: Any) -> BoundPolicy:
    """Return a policy with these rules about these kinds. Raises FaultsError."""
    spec = {
        "match": {"any": [{"kinds": [*kinds]}]},
        "validations": [{"expression": each, "message": "wrong"} for each in expressions],
    }
    metadata = {"name": "typed", **more.pop("metadata", {})}
    head = {"apiVersion": "gatewright.io/v1alpha1", "kind": "ClusterAdmissionPolicy"}
    custom = more.pop("custom", None)
    found = bind({**head, "metadata": metadata, "spec": spec | more}, catalogue(), custom=custom)
    assert isinstance(found, BoundPolicy)
    return found


def faults(*expressions: str, **options: Any) -> str:
    """Return the errors of rules; "" if there are none."""
    try:
        bound(*expressions, **options)
    except FaultsError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "expression",
    [
        "!has(object.spec.replics)",
        f"{POD}.?hostNetwrk.orValue(true) == true",
        f"{POD}.containers.all(c, c.imag != '')",
        f"{POD}.containers.exists(c, c.ports.all(p, p.hostport == 0))",
        "oldObject == null || oldObject.spec.replica == 1",
        "object.metadata.lables['a'] == 'b'",
        "[object].all(o, o.spec.replica < 1)",
    ],
)
def test_a_field_that_no_kind_has_is_an_error(expression):
    """In a macro, an optional, of the old object: wherever a rule reads it."""
    assert "undefined field" in faults(expression)


def test_every_undefined_field_of_a_rule_is_named():
    """With its place, and through variables."""
    variables = [{"name": "pod", "expression": POD}]
    text = faults(
        "variables.pod.containers.all(c, c.imag != '' && c.nam != '')", variables=variables
    )
    assert text.splitlines() == [
        "spec.validations[0].expression: line 1, column 35: undefined field 'imag' of 'Container'; "
        'did you mean "image"?',
        "spec.validations[0].expression: line 1, column 51: undefined field 'nam' of 'Container'; "
        'did you mean "name"?',
    ]


@pytest.mark.parametrize(
    ("expression", "kinds"),
    [
        ("has(object.spec.replicas) || has(object.spec.hostNetwork)", ("Deployment", "Pod")),
        ("has(object.spec.targetCPUUtilizationPercentage)", ("HorizontalPodAutoscaler",)),
        ("has(object.spec.any)", ("certificates.cert-manager.io/v1/Certificate",)),
        ("object.spec.paused == true", ("Deployment", "StatefulSet")),
        ("object.spec.replicas == '2'", ("Deployment",)),
        (f"{POD}.containers.all(c, c.resources.limits.memory != '')", ("Deployment",)),
        (f"{POD}.containers.all(c, !has(c.livenessProbe.httpGet.port))", ("Deployment",)),
        ("object.data['a'] != ''", ("ConfigMap", "Secret")),
        ("object.rules.all(r, r.verbs.all(v, v != '*'))", ("Role", "ClusterRole")),
    ],
)
def test_a_rule_that_can_be_right_is_no_error(expression, kinds):
    """Fields of one kind, of one version, or of a custom kind; other type errors are warnings."""
    assert faults(expression, kinds=kinds) == ""


def test_an_annotation_admits_fields_of_a_newer_kubernetes():
    """Only with its value."""
    rule = "object.spec.replica < 2"
    assert faults(rule) == REPLICA
    for value, expected in (("allow", ""), ("no", REPLICA)):
        annotations = {"gatewright.io/unknown-fields": value}
        assert faults(rule, metadata={"annotations": annotations}) == expected


def test_conditions_of_a_built_in_policy_are_checked_too():
    """Against the kinds that it judges."""
    conditions = [{"name": "small", "expression": "object.spec.replica < 2"}]
    with pytest.raises(FaultsError, match="undefined field 'replica'"):
        bound(
            kinds=("Service",), policy="service-types", matchConditions=conditions, validations=[]
        )


GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Gadget", "plural": "gadgets"},
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                            "any": {"x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def test_a_custom_kind_is_checked_by_its_definition():
    """Its fields, and nothing more; without the definition, it may have any field."""
    gadget = {"kinds": ("example.org/v1/Gadget",)}
    known = {**gadget, "custom": CustomTypes.of([GADGETS])}
    assert faults("object.spec.size < 2 && object.any.thing == 1", **known) == ""
    assert faults("object.metadata.name != ''", **known) == ""
    assert "undefined field 'sice'" in faults("object.spec.sice < 2", **known)
    assert faults("object.spec.sice < 2", **gadget) == ""
    condition = {"matchConditions": [{"name": "a", "expression": "object.sepc.size == 1"}]}
    assert "undefined field 'sepc'" in faults("true", **known, **condition)
    other = {**known, "kinds": ("example.org/v2/Gadget",)}
    assert faults("object.spec.sice < 2", **other) == ""
