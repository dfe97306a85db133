"""Compare the conversions of Kyverno's policies with Kyverno's own command line.

    python -m benchmarks.migrations.kyverno_cli CHECKOUT KYVERNO [VERDICTS [SEED]]

judges random objects, from the samples of a checkout of kyverno/policies with fields changed, by
random validating policies and by their conversions, until there are VERDICTS verdicts. Prints each
difference, and the figures. Exits with 1 if there is a difference.
KYVERNO is the program (github.com/kyverno/kyverno/cmd/cli/kubectl-kyverno).
"""

import copy
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import yaml

from benchmarks.migrations.judging import judged
from benchmarks.migrations.samples import Sample, name_of, read_file
from config.built_in_defaults import with_api_defaults
from config.documents import Document
from config.field_paths import value_at
from config.object_faults import object_faults
from config.schemas import CustomTypes, root_type
from gatewright.tools.migrate import migrate
from gatewright.tools.migrate.results import ConvertedPolicy
from kube.resource import JsonObject
from webhook.harness.bases import has_smallest, pod_path

KINDS = ("ClusterPolicy", "ValidatingPolicy")
VALUES = (0, 1, 5, True, False, "", "a", "latest", "100Mi", "nginx:latest", "ghcr.io/x/y:1", [], {})
OBJECTS = 100  # judged by each policy


def main() -> int:
    """Print the figures and the differences."""
    checkout, program, *rest = sys.argv[1:]
    most, seed = (int(each) for each in (*rest, *("10000", "0")[len(rest) :]))
    random, counts, differs = Random(seed), Counter[str](), 0  # noqa: S311
    samples = samples_of(Path(checkout))
    for document, policies in converted_of(Path(checkout), random):
        objects = [*random_objects(random, samples, OBJECTS)]
        wanted = original(program, document, objects)
        if not wanted:
            print(f"{document.source}: no report of Kyverno", flush=True)
            continue
        for (rule, own), (index, object) in product(policies.items(), enumerate(objects)):
            theirs = wanted.get((index, rule), "skip")
            value = Document.of_object(copy.deepcopy(object))
            ours = judged(own, Sample("", value, theirs == "fail", is_written=True))
            counts[f"{ours}, Kyverno: {theirs}"] += 1
            if theirs != "error" and (ours == "denied") != (theirs == "fail"):
                differs += 1
                title = f"{document.source}: {rule}: {ours}, Kyverno {theirs}"
                print(f"{title}\n  {json.dumps(object)}", flush=True)
        if counts.total() >= most:
            break
    print(*(f"{number:6} {pair}" for pair, number in sorted(counts.items())), sep="\n")
    print(f"{counts.total()} verdicts, {differs} differ")
    return 1 if differs else 0


def converted_of(
    checkout: Path, random: Random
) -> Iterator[tuple[Document, dict[str, list[ConvertedPolicy]]]]:
    """Yield each policy of which rules are converted, in any order, with those of each rule."""
    paths = [
        path
        for path in sorted(checkout.rglob("*.yaml"))
        if not any(part.startswith(".") for part in path.parts)
    ]
    for path in random.sample(paths, len(paths)):
        for document in read_file(path):
            if document.value.get("kind") not in KINDS:
                continue
            by_rule = defaultdict(list)
            for each in migrate([document]).converted:
                if "mutations" not in each.spec:
                    by_rule[each.origin.rule].append(each)
            if by_rule:
                yield document, by_rule


def samples_of(checkout: Path) -> list[JsonObject]:
    """Return the objects of the library's tests."""
    known = has_smallest()
    return [
        each.value
        for path in sorted(checkout.rglob("*.yaml"))
        if any(part.startswith((".kyverno-test", ".chainsaw-test")) for part in path.parts)
        for each in read_file(path)
        if each.value.get("kind") in known and name_of(each)
        # Kyverno's command line judges versions too that no API server has.
        if root_type(str(each.value.get("apiVersion")), each.value["kind"])
    ]


def random_objects(
    random: Random, samples: Sequence[JsonObject], count: int
) -> Iterator[JsonObject]:
    """Yield samples, most of them with fields changed, as the API server would store them.

    Objects of which it is known that the API server rejects them are left out.
    """
    index = 0
    while index < count:
        object = copy.deepcopy(random.choice(samples))
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            change(random, object)
        object["metadata"]["name"] = f"o{index}"
        pod = pod_path(object["kind"])
        has_containers = pod is None or value_at(object, f"{pod}.containers")
        if has_containers and not [*object_faults(object, CustomTypes())]:
            index += 1
            yield with_api_defaults(object)


def change(random: Random, object: JsonObject) -> None:
    """Remove a field below the spec or the metadata, or replace a value by another one."""
    places = [
        place
        for key in object
        if key not in ("apiVersion", "kind", "metadata", "status")
        for place in _places(object, key)
    ]
    if not places:
        return
    holder, key = random.choice(places)
    if random.random() < 0.5 and isinstance(holder, dict):
        del holder[key]
    else:
        value = holder[key]
        alike = [each for each in VALUES if type(each) is type(value)] or [value]
        holder[key] = copy.deepcopy(random.choice(alike))


def _places(holder: Any, key: Any) -> Iterator[tuple[Any, Any]]:
    value = holder[key]
    yield holder, key
    if isinstance(value, dict | list):
        for below in value if isinstance(value, dict) else range(len(value)):
            yield from _places(value, below)


def original(
    program: str, document: Document, objects: Sequence[JsonObject]
) -> dict[tuple[int, str], str]:
    """Return Kyverno's result for each object and rule; fail counts before others."""
    with tempfile.TemporaryDirectory() as directory:
        policy, resources = Path(directory) / "policy.yaml", Path(directory) / "resources.yaml"
        policy.write_text(yaml.safe_dump(document.value))
        resources.write_text(yaml.safe_dump_all(objects))
        command = [program, "apply", policy, "--resource", resources, "--policy-report"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    report = run.stdout[run.stdout.find("apiVersion:") :]
    reports = [each for each in yaml.safe_load_all(report) if each]
    found: dict[tuple[int, str], str] = {}
    for result in reports[0]["results"] if reports else ():
        rule = str(result.get("rule", "")).removeprefix("autogen-").removeprefix("cronjob-")
        if document.value["kind"] == "ValidatingPolicy":
            rule = ""  # it has no rules; an error is one of "evaluation"
        for resource in result["resources"]:
            key = int(resource["name"][1:]), rule
            if found.get(key) != "fail":
                found[key] = result["result"]
    return found


if __name__ == "__main__":
    sys.exit(main())
