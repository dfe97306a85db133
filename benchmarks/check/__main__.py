"""Print the CPU time and memory of `gatewright check`, conftest and kube-score on directories.

conftest runs the same rules, written in Rego, and must find as many violations. kube-score has no
equivalent rules; it runs its own, about 30 checks.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import yaml

from tests.controlplane.gobuild import build

HERE = Path(__file__).parent
ROUNDS = {10: 5, 1_000: 3, 10_000: 1}  # by number of objects
OF_A_FILE = 10
TOOLS = {
    "conftest": "github.com/open-policy-agent/conftest",
    "kube-score": "github.com/zegl/kube-score/cmd/kube-score",
}


class Cost(NamedTuple):
    """The cost of one run of a program."""

    cpu: float
    megabytes: float


def objects(count: int) -> Iterator[dict[str, object]]:
    """Yield objects of an application: half of them Deployments, of which a fifth is bad."""
    for number in range(count):
        name, labels = f"shop-{number}", {"app.kubernetes.io/name": f"shop-{number}"}
        metadata = {"name": name, "namespace": "shop", "labels": labels}
        spec: dict[str, object]
        match number % 4:
            case 0:
                spec = {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}
                yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
            case 2:
                data = {f"key-{index}": "value " * 20 for index in range(10)}
                yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            case _:
                containers = [
                    _container(f"app-{index}", is_bad=number % 5 == 0) for index in range(2)
                ]
                template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
                spec = {
                    "replicas": 2,
                    "selector": {"matchLabels": labels},
                    "template": template,
                }
                kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
                yield kind | {"metadata": metadata, "spec": spec}


def _container(name: str, *, is_bad: bool) -> dict[str, object]:
    limits = {"memory": "1Gi"} if is_bad else {"cpu": "1", "memory": "1Gi"}
    return {
        "name": name,
        "image": f"registry.example.com/shop/{name}{'' if is_bad else ':1.2.3'}",
        "env": [{"name": f"NAME_{index}", "value": "value"} for index in range(8)],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"limits": limits, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "securityContext": {
            "runAsNonRoot": True,
            "privileged": is_bad,
            "readOnlyRootFilesystem": True,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
    }


def run(command: Sequence[object]) -> tuple[Cost, str]:
    """Run a program; return its cost and its output. Exit code 1 is a verdict, not an error."""
    with tempfile.TemporaryFile("w+") as output:
        # Compile the modules, like an installation does.
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
        process = subprocess.Popen(  # noqa: S603
            [str(each) for each in command], stdout=output, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            sys.exit(f"{command[0]}: exit code {process.returncode}")
        output.seek(0)
        return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024), output.read()


def violations_of_gatewright(output: str) -> int:
    """Return how many violations a JSON report has."""
    return sum(len(each["violations"]) for each in json.loads(output)["results"])


def violations_of_conftest(output: str) -> int:
    """Return how many violations a JSON report has."""
    return sum(len(each.get("failures") or ()) for each in json.loads(output))


def main() -> None:
    """Measure each size, with the programs in turns."""
    programs = {
        name: build(HERE, package, name, takes="5 minutes") for name, package in TOOLS.items()
    }
    print(f"medians of rounds; files of {OF_A_FILE} objects")
    print("objects  program     CPU s     MB   CPU of Gatewright's")
    with tempfile.TemporaryDirectory() as temporary:
        for size, rounds in ROUNDS.items():
            directory = Path(temporary) / str(size)
            files = list(_written(directory, size))
            for name, costs, ratio in _measured(programs, directory, files, rounds):
                cpu, memory = (median(each) for each in zip(*costs, strict=True))
                print(f"{size:7,}  {name:10} {cpu:6.2f} {memory:6.0f} {ratio:8.2f}x", flush=True)


def _measured(
    programs: Mapping[str, Path], directory: Path, files: Sequence[Path], count: int
) -> Iterator[tuple[str, list[Cost], float]]:
    """Yield the costs of each program, and its CPU time as a multiple of Gatewright's."""
    own = (
        Path(sys.executable).parent / "gatewright",
        "check",
        "--policies",
        HERE / "policies.yaml",
    )
    rego = ("test", "--policy", HERE / "policy.rego", "--output", "json", directory)
    commands: dict[str, Sequence[object]] = {
        "gatewright": (*own, "-o", "json", directory),
        "conftest": (programs["conftest"], *rego),
        "kube-score": (programs["kube-score"], "score", "-o", "json", *files),
    }
    rounds = [{name: run(command) for name, command in commands.items()} for _ in range(count)]
    found = {
        violations_of_gatewright(rounds[0]["gatewright"][1]),
        violations_of_conftest(rounds[0]["conftest"][1]),
    }
    if len(found) != 1:
        sys.exit(f"Gatewright and conftest find different numbers of violations: {found}")
    for name in commands:
        ratio = median(each[name][0].cpu / each["gatewright"][0].cpu for each in rounds)
        yield name, [each[name][0] for each in rounds], ratio


def _written(directory: Path, count: int) -> Iterator[Path]:
    directory.mkdir()
    every = list(objects(count))
    for number in range(0, count, OF_A_FILE):
        file = directory / f"{number}.yaml"
        file.write_text(yaml.safe_dump_all(every[number : number + OF_A_FILE], sort_keys=False))
        yield file


if __name__ == "__main__":
    main()
