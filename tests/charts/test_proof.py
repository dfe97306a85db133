"""Policies carry their cases, and the controller measures whether they are enforced."""

import pytest
import yaml

CONTROLLER, WEBHOOK = "gatewright-controller-manager", "gatewright-webhook"
ENFORCEMENT = "gatewright-enforcement"


@pytest.mark.long
def test_a_process_proves_the_presets_by_their_cases(render):
    """Without a preset there are none."""
    objects = render("policies.preset={baseline,rbac}")
    for name in (CONTROLLER, WEBHOOK):
        assert "--preset-cases=baseline,rbac" in objects.arguments(name)
        assert not any(each.startswith("--preset-cases") for each in render().arguments(name))


def test_cases_are_beside_the_policies_that_they_test(render):
    """They are a key of the ConfigMap, about its set."""
    case = "policies.cases[0].name=it,policies.cases[0].expect=allowed"
    data = render("policies.preset=baseline", case)["ConfigMap", "gatewright-policies"]["data"]
    assert data.keys() == {"preset.yaml", "cases.yaml"}
    assert yaml.safe_load(data["cases.yaml"]) == {
        "policies": "preset.yaml",
        "cases": [{"name": "it", "expect": "allowed"}],
    }


def test_cases_in_config_maps_of_your_own_are_watched_by_both_processes(render):
    """They may watch each by its name, and no other."""
    objects = render("policies.caseConfigMaps={one,two}")
    names = ["gatewright-policies", "one", "two"]
    for name in (CONTROLLER, WEBHOOK):
        assert f"--policies-config-map={','.join(names)}" in objects.arguments(name)
    watched = [
        rule["resourceNames"]
        for (kind, _), object in objects.items()
        if kind == "Role"
        for rule in object["rules"]
        if rule["resources"] == ["configmaps"] and rule["verbs"] == ["list", "watch"]
    ]
    assert watched == [names, names]


def test_measuring_enforcement_needs_one_right(render):
    """It may list namespaces, and create what its kinds create; a value turns it off."""
    objects = render()
    assert objects.rights(ENFORCEMENT) == {("", "namespaces", "list")}
    assert "--measure-enforcement" in objects.arguments(CONTROLLER)
    without = render("enforcement.enabled=false")
    assert ("ClusterRole", ENFORCEMENT) not in without
    assert "--measure-enforcement" not in without.arguments(CONTROLLER)
