"""Pods that a real API server would reject before it calls a webhook, so that no case can test them."""

from typing import get_args

import pytest

from config.faults import FaultsError, parse
from tests.webhook.asking import ask, in_force
from webhook.engine import Engine
from webhook.policies import app_armor, host_path_volumes, seccomp_profiles, security_defaults
from webhook.policies._pod_security_checks import CHECKS, NEWEST, checks
from webhook.policies._security_contexts import Profiles
from webhook.policies.host_path_volumes import HostPathVolumes
from webhook.policies.pod_security import CheckName, level_and_version
from webhook.policies.seccomp_profiles import SeccompProfiles
from webhook.policy_sets.catalogue import catalogue


@pytest.mark.parametrize(
    ("mode", "labels", "expected"),
    [
        ("enforce", {}, ("baseline", 20)),
        ("enforce", {"enforce": "restricted"}, ("restricted", 20)),
        ("enforce", {"enforce-version": "v1.30"}, ("baseline", 30)),
        ("enforce", {"enforce-version": "latest"}, ("baseline", NEWEST)),
        ("enforce", {"enforce-version": "v1.999999999999999999999"}, ("baseline", NEWEST)),
        ("enforce", {"enforce-version": "1.30"}, ("baseline", NEWEST)),
        ("enforce", {"enforce-version": "v1.030"}, ("baseline", NEWEST)),
        ("enforce", {"enforce": "strict"}, ("restricted", 20)),
        ("enforce", {"enforce": ""}, ("restricted", 20)),
        ("audit", {"audit": "strict"}, ("privileged", 20)),
        (
            "audit",
            {"audit": "restricted", "audit-version": "v1.3", "enforce": "privileged"},
            ("restricted", 3),
        ),
        ("audit", {"enforce": "restricted"}, ("baseline", 20)),
        ("warn", {"warn": "strict", "enforce": "restricted"}, ("privileged", 20)),
        ("warn", {"enforce": "restricted"}, ("restricted", 20)),
        ("warn", {"enforce": "restricted", "enforce-version": "v1.9"}, ("restricted", 9)),
        (
            "warn",
            {"enforce": "restricted", "enforce-version": "v1.9", "warn-version": "v1.8"},
            ("restricted", 8),
        ),
        ("warn", {"enforce": "privileged", "enforce-version": "v1.9"}, ("baseline", 20)),
        ("warn", {"enforce": "strict"}, ("baseline", 20)),
        ("warn", {"warn": "privileged", "enforce": "restricted"}, ("privileged", 20)),
    ],
)
def test_labels_are_read_as_kubernetes_reads_them(mode, labels, expected):
    """An invalid label fails closed for enforce and open for the other modes; warnings follow the enforced level."""
    labels = {f"pod-security.kubernetes.io/{key}": value for key, value in labels.items()}
    assert level_and_version(labels, mode, "baseline", 20) == expected


def test_a_level_holds_each_check_once():
    """A later row replaces an earlier one, and a restricted check replaces the baseline check that it includes."""
    names = [check.policy.name for check in checks("restricted", NEWEST)]
    assert len(names) == len(set(names))
    assert "volume-types" in names
    assert "host-path-volumes" not in names
    assert checks("privileged", NEWEST) == ()


def test_every_check_can_be_left_out():
    """The parameter names each policy that is a check, and no other."""
    assert set(get_args(CheckName)) == {check.policy.name for check in CHECKS}


@pytest.mark.parametrize(
    "value", ["localhost", "Localhost", "RuntimeDefault", "docker/default", "runtime/default2"]
)
def test_an_invalid_annotation_for_app_armor(value):
    """Only values of the annotation are valid, not those of the field."""
    annotations = {"container.apparmor.security.beta.kubernetes.io/app": value}
    (found,) = app_armor.validate(ask({"metadata": {"annotations": annotations}}), Profiles())
    assert found.value == value


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("seccomp.security.alpha.kubernetes.io/pod", "unconfined", 1),
        ("container.seccomp.security.alpha.kubernetes.io/app", "unconfined", 1),
        ("container.seccomp.security.alpha.kubernetes.io/other", "unconfined", 0),
        ("seccomp.security.alpha.kubernetes.io/pod", "docker/default", 0),
        ("seccomp.security.alpha.kubernetes.io/pod", "localhost/mine", 0),
        ("seccomp.security.alpha.kubernetes.io/pod", "", 1),
    ],
)
def test_annotations_for_seccomp(key, value, expected):
    """Before 1.19 only the annotations of the pod and of its containers decide."""
    pod = {"metadata": {"annotations": {key: value}}, "spec": {"containers": [{"name": "app"}]}}
    assert len(list(seccomp_profiles.validate_annotations(ask(pod), SeccompProfiles()))) == expected


@pytest.mark.parametrize("path", ["/var/log/../lib", "..", "/..", None, ""])
def test_a_path_with_dots_is_never_allowed(path):
    """Even if / is allowed, a path with .. is denied; a volume without a path is denied, too."""
    params = HostPathVolumes(allowed=[{"prefix": "/srv"}] if not path else [{"prefix": "/"}])
    pod = {"spec": {"volumes": [{"name": "a", "hostPath": {"path": path}}]}}
    assert len(list(host_path_volumes.validate(ask(pod), params))) == 1


def test_ephemeral_containers_that_are_there_stay_as_they_are():
    """An existing ephemeral container cannot change; an added one gets the defaults."""
    old = {"spec": {"containers": [], "ephemeralContainers": [{"name": "old"}]}}
    new = {"spec": {"containers": [], "ephemeralContainers": [{"name": "old"}, {"name": "new"}]}}
    engine = Engine([in_force(security_defaults.POLICY)])
    verdict = engine.mutate(ask(new, "Pod", "ephemeralcontainers", old_object=old))
    assert {operation["path"] for operation in verdict.operations} == {
        "/spec/ephemeralContainers/1/securityContext"
    }


@pytest.mark.parametrize(
    ("policy", "params", "faults"),
    [
        (
            "capabilities",
            {"allowed": ["CAP_KILL"]},
            [("allowed[0]", '"CAP_KILL": expected KILL: the API spells capabilities without CAP_')],
        ),
        ("capabilities", {"required_drop": ["all"]}, None),
        ("host-path-volumes", {"allowed": [{"prefix": "var"}]}, None),
        (
            "host-path-volumes",
            {"denied": ["/var/../etc"]},
            [("denied[0]", '"/var/../etc": expected an absolute path without ..')],
        ),
        (
            "host-ports",
            {"allowed": [{"minimum": 2, "maximum": 1}]},
            [("allowed[0]", "minimum 2 is above maximum 1")],
        ),
        ("host-ports", {"allowed": [80]}, None),
        ("host-namespaces", {"allowed": ["hostUsers"]}, None),
        ("run-as-user", {"allowed": []}, None),
        ("volume-types", {"denied": ["secrets"]}, None),
        ("pod-security", {"level": "strict"}, None),
        ("pod-security", {"version": "1.025"}, None),
        ("pod-security", {"version": "2.0"}, None),
        ("pod-security", {"version": "1.25.3"}, None),
        ("pod-security", {"excluded_checks": ["group-ids"]}, None),
        ("security-defaults", {"run_as_user": 0}, None),
        ("security-defaults", {"drop_capabilities": ["CAP_KILL"]}, None),
    ],
)
def test_invalid_parameters_are_reported_with_their_path(policy, params, faults):
    """The error of an invalid parameter has its path."""
    with pytest.raises(FaultsError) as told:
        parse(catalogue()[policy].params, params)
    assert faults is None or list(told.value.faults) == faults
