"""`pod-security` gives the same verdict as Kubernetes' library, for every pod in the library's own tests."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.fixtures import available
from tests.controlplane.gobuild import MissingToolError
from tests.webhook.asking import ask
from webhook.engine import Violation
from webhook.policies import pod_security
from webhook.policies._pod_security_checks import CHECKS, checks
from webhook.policies.pod_security import PodSecurity

MODULE = "k8s.io/pod-security-admission"
GO_MOD = Path(__file__).parents[1] / "controlplane" / "podsecurity" / "go.mod"
LEVELS = ("baseline", "restricted")
Known = dict[tuple[bytes, tuple[int, ...]], tuple[list[Violation], list[Violation]]]
FEWEST = {
    "baseline": 1400,
    "restricted": 2700,
}  # cases; a directory that is half there must not pass

OURS = {  # the check that a file is about, by the name that Kubernetes gives it
    "allowprivilegeescalation": {"privilege-escalation"},
    "apparmorprofile": {"app-armor"},
    "capabilities_baseline": {"capabilities"},
    "capabilities_restricted": {"capabilities"},
    "hostnamespaces": {"host-namespaces"},
    "hostpathvolumes": {"host-path-volumes", "volume-types"},
    "hostports": {"host-ports"},
    "hostprobesandhostlifecycle": {"host-probes"},
    "privileged": {"privileged-containers"},
    "procmount": {"proc-mount"},
    "procmount_restricted": {"proc-mount"},
    "restrictedvolumes": {"volume-types"},
    "runasnonroot": {"run-as-non-root"},
    "runasuser": {"run-as-user"},
    "seccompprofile_baseline": {"seccomp-profiles"},
    "seccompprofile_restricted": {"seccomp-profiles"},
    "selinuxoptions": {"selinux-options"},
    "sysctls": {"sysctls"},
    "windowshostprocess": {"windows-host-process"},
}


@pytest.fixture(scope="module")
def testdata(pytestconfig: pytest.Config) -> Path:
    """The directory of the pods."""
    return available(pytestconfig, library_of_pods)


def library_of_pods() -> Path:
    """Return Go's directory with the module's pods; the module is downloaded if it is missing."""
    version = re.search(rf"{MODULE} (v\S+)", GO_MOD.read_text())[1]
    command = ["go", "mod", "download", "-json", f"{MODULE}@{version}"]
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    if not shutil.which("go"):
        raise MissingToolError("there is no Go, which fetches the pods that Kubernetes tests with")
    answer = subprocess.run(
        command, cwd="/", env=environment, capture_output=True, text=True, timeout=120
    )
    found = json.loads(answer.stdout or "{}")
    if answer.returncode:
        raise MissingToolError(
            f"{' '.join(command)}: {found.get('Error') or answer.stderr.strip()}"
        )
    return Path(found["Dir"]) / "test" / "testdata"


@pytest.mark.long
@pytest.mark.parametrize("level", LEVELS)
def test_every_pod_gets_the_verdict_of_kubernetes(
    testdata: Path, level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each pod, and a Deployment of it, passes or fails at its level and version, and fails by the check it is for."""
    counts: Counter[tuple[int, str]] = Counter()
    known: Known = {}
    wrong = []
    for file in sorted((testdata / level).glob("v1.*/*/*.yaml")):
        version, verdict = file.parts[-3], file.parts[-2]
        counts[int(version.removeprefix("v1.")), verdict] += 1
        violations, in_template = _judged(
            file.read_bytes(), PodSecurity(level=level, version=version), known
        )
        wrong += [
            f"{level}/{version}/{verdict}/{file.name}: {text}"
            for text in _differences(file, violations, in_template)
        ]
    with capsys.disabled():
        print(f"\n{_table(level, counts, len(wrong))}")
    assert wrong == []
    assert counts.total() >= FEWEST[level]


def _differences(
    file: Path, violations: list[Violation], in_template: list[Violation]
) -> Iterator[str]:
    if [each.path for each in in_template] != [f"spec.template.{each.path}" for each in violations]:
        yield f"a Deployment of it: {in_template}"
    failed = {violation.rule.rpartition(": ")[2].removesuffix(")") for violation in violations}
    if file.parts[-2] == "pass":
        if failed:
            yield f"denied by {failed}"
    elif not failed & OURS[re.sub(r"\d+$", "", file.stem)]:
        yield f"denied by {failed or 'nothing'}"


def _judged(
    text: bytes, params: PodSecurity, known: Known
) -> tuple[list[Violation], list[Violation]]:
    """Judge a pod, and a Deployment of it; most pods are there for many versions, and most versions check the same."""
    asked = text, tuple(map(id, checks(params.level, int(params.version.partition(".")[2]))))
    if asked not in known:
        pod = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        template = {"metadata": pod["metadata"], "spec": pod["spec"]}
        deployment = {"spec": {"template": template}}
        known[asked] = (
            list(pod_security.validate(ask(pod), params)),
            list(pod_security.validate(ask(deployment, "Deployment"), params)),
        )
    return known[asked]


def _table(level: str, counts: Counter[tuple[int, str]], wrong: int) -> str:
    versions = sorted({version for version, _ in counts})
    rows = [
        f"  v1.{minor:<4}{counts[minor, 'pass']:5} pass {counts[minor, 'fail']:5} fail"
        for minor in versions
    ]
    return "\n".join(
        [f"{level}: {counts.total()} pods, {wrong} with another verdict than Kubernetes", *rows]
    )


def test_every_check_has_a_failing_pod_of_kubernetes() -> None:
    """Kubernetes has a pod that fails for each check, so that no check is only ours."""
    assert {check.policy.name for check in CHECKS} == set().union(*OURS.values())
