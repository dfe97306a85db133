"""Invalid parameters are rejected, with path and reason."""

import pytest

from config.faults import FaultsError, parse
from webhook.policy_sets.catalogue import catalogue

UNIT = "must be a number with an optional unit, such as 500m, 1.5 or 2Gi"


@pytest.mark.parametrize(
    ("policy", "params", "faults"),
    [
        (
            "autoscaler-bounds",
            {"minimum": -1},
            [("minimum", "-1: should be greater than or equal to 0")],
        ),
        ("empty-dir-size", {"maximum": "1 Gi"}, [("maximum", f'"1 Gi": {UNIT}')]),
        ("image-pull-policy", {"required": "Sometimes"}, None),
        ("image-registries", {}, [("", "expected at least one registry, approved or denied")]),
        ("image-registries", {"denied": ["*"]}, [("denied[0]", '"*": its registry is malformed')]),
        ("image-tags", {"allowed": []}, None),
        ("empty-dir-size", {"maximum": "-1"}, [("maximum", '"-1": must not be negative')]),
        (
            "registry-rewrite",
            {"mirrors": {"a.example": "a.example/mirror"}},
            [
                (
                    "",
                    "images of the mirror a.example/mirror would be rewritten again, as those of a.example",
                )
            ],
        ),
        (
            "registry-rewrite",
            {"mirrors": {"b.example": "a.example", "a.example/x": "c.example"}},
            [
                (
                    "",
                    "images of the mirror a.example would be rewritten again, as those of a.example/x",
                )
            ],
        ),
        ("registry-rewrite", {"mirrors": {"*.example": "a.example"}}, None),
        ("registry-rewrite", {"mirrors": {}}, None),
        (
            "replica-limits",
            {"minimum": 3, "maximum": 2},
            [("", "minimum must not be above maximum")],
        ),
        ("resource-bounds", {}, [("", "expected bounds of limits or of requests")]),
        ("resource-bounds", {"limits": {"cpu": {}}}, [("limits.cpu", "expected min or max")]),
        (
            "resource-bounds",
            {"limits": {"cpu": {"min": "1", "max": "999m"}}},
            [("limits.cpu", "min must not be above max")],
        ),
        (
            "resource-bounds",
            {"requests": {"cpu": {"max": "5 cores"}}},
            [("requests.cpu.max", f'"5 cores": {UNIT}')],
        ),
        ("resource-defaults", {}, [("", "expected limits or requests")]),
        (
            "resource-defaults",
            {"limits": {"cpu": "500m"}, "requests": {"cpu": 1}},
            [("", "the request of cpu must not be above its limit")],
        ),
        ("resource-defaults", {"limits": {"cpu": True}}, None),
        ("resource-limits", {"required": []}, None),
        ("resource-limits", {"required": ["gpu"]}, None),
        ("resource-ratios", {"maximum": {}}, None),
        ("resource-ratios", {"maximum": {"cpu": "twice"}}, [("maximum.cpu", f'"twice": {UNIT}')]),
    ],
)
def test_wrong_parameters_are_refused(policy, params, faults):
    """Every error has its path; a case without a path only needs one error."""
    with pytest.raises(FaultsError) as told:
        parse(catalogue()[policy].params, params, noun="parameter")
    assert faults is None or list(told.value.faults) == faults


@pytest.mark.parametrize(
    ("policy", "params"),
    [
        ("image-registries", {"denied": ["docker.io"]}),
        (
            "registry-rewrite",
            {"mirrors": {"a.example/x": "a.example/y", "b.example/y": "a.example/y/z"}},
        ),
        ("registry-rewrite", {"mirrors": {"a.example/x": "b.example/x"}}),
        ("resource-bounds", {"requests": {"cpu": {"min": "1", "max": "1000m"}}}),
        ("resource-bounds", {"limits": {"cpu": {"max": 0.5}}}),
        (
            "resource-defaults",
            {"limits": {"cpu": 1}, "requests": {"cpu": "1000m", "memory": "1Gi"}},
        ),
    ],
)
def test_sensible_parameters_are_accepted(policy, params):
    """No rule is stricter than the standard."""
    assert parse(catalogue()[policy].params, params, noun="parameter")


@pytest.mark.parametrize(
    ("policy", "params", "needs"),
    [
        ("resource-limits", {}, set()),
        ("resource-limits", {"limit_ranges": True}, {"limit_ranges"}),
        ("resource-requests", {"limit_ranges": True}, {"limit_ranges"}),
        ("disruption-budgets", {}, set()),
        (
            "disruption-budgets",
            {"workloads": True},
            {"disruption_budgets", "workloads", "autoscalers", "parent"},
        ),
    ],
)
def test_parameters_decide_what_is_looked_up(policy, params, needs):
    """Only look-ups that these parameters need are requested."""
    known = catalogue()[policy]
    assert known.needed_look_ups(parse(known.params, params, noun="parameter")) == needs
