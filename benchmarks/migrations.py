"""Judge the samples of kyverno/policies and gatekeeper-library by their converted policies.

    python -m benchmarks.migrations kyverno CHECKOUT
    python -m benchmarks.migrations gatekeeper CHECKOUT

prints, for each folder, how many rules are converted and how many samples get the verdict of the
original, and lists each that does not. Exits with 1 where there is one.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from config.documents import Document, DocumentError, read_documents
from gatewright.migrate import migrate
from gatewright.migrate.results import ConvertedPolicy
from webhook.engine import NOW as NOW_LOOK_UP
from webhook.engine import BoundPolicy, Engine
from webhook.harness.bases import is_cluster_scoped, reviewed_namespace
from webhook.harness.manifests import ManifestJudge, add_manifests
from webhook.harness.objects import is_object
from webhook.harness.reviews import Admission, ask, review
from webhook.known import Known
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

NOW = datetime(2026, 11, 1, tzinfo=UTC)
TESTS = (".kyverno-test", ".chainsaw-test")
ERROR = "($error != null)"
# Upstream's own rule allows the first; of the next two, the API server sets the unset field; it
# admits no Pod without containers.
DISPUTED = (
    "require-drop-cap-net-raw/.chainsaw-test/bad-pod-corner.yaml: Pod add-capabilities-bad-001",
    "imagepullpolicy-always imagepullpolicy-always: Pod myapp-pod-2",
    "imagepullpolicy-always imagepullpolicy-always: Deployment mydeploy1",
    "psp-seccomp-baseline/allowed_ephemeral.yaml (seccomp-baseline)",
)


class Sample(NamedTuple):
    """An object, whether the original denies it, and what else the original knows."""

    where: str
    document: Document
    is_denied: bool
    beside: Sequence[Document] = ()
    labels: Mapping[str, dict[str, str]] = MappingProxyType({})
    is_written: bool = False  # judged as it is written, without the API server's defaults
    patched: Document | None = None  # what the original makes of it


def main() -> int:
    """Print the figures of a checkout."""
    library, checkout = sys.argv[1], Path(sys.argv[2])
    folders = {"kyverno": kyverno, "gatekeeper": gatekeeper}[library](checkout)
    figures: dict[str, Counter[str]] = defaultdict(Counter)
    wrong = []
    for folder, counted, policies, samples in folders:
        figures[folder] += counted
        for sample in samples:
            if policies is None:
                figures[folder]["not converted"] += 1
                continue
            verdict = judged(policies, sample)
            is_right = verdict == ("denied" if sample.is_denied else "allowed")
            figures[folder]["right" if is_right else "wrong"] += 1
            if not is_right:
                wrong.append(f"{sample.where}: {verdict}, the original "
                             f"{'denies' if sample.is_denied else 'allows'}")  # fmt: skip
    columns = ("rules", "converted", "right", "wrong", "not converted")
    print(f"{'folder':34}", *(f"{each:>14}" for each in columns))
    total = sum(figures.values(), Counter())
    for folder, counted in [*sorted(figures.items()), ("total", total)]:
        print(f"{folder:34}", *(f"{counted[each]:>14}" for each in columns))
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def judged(policies: Iterable[ConvertedPolicy], sample: Sample) -> str:
    """Return the verdict of converted policies on a sample, whatever their actions are."""
    bound = []
    for each in policies:
        spec = {**each.spec, "validationActions": ["Deny"]}
        bound.append(bind({**each.object, "spec": spec}, catalogue()))
    engine = Engine(each for each in bound if isinstance(each, BoundPolicy))
    known = Known()
    add_manifests(known, [*sample.beside, sample.document], "default")
    for document in (sample.document, *sample.beside):
        known.set_labels((document.value.get("metadata") or {}).get("namespace", "default"), {})
    for namespace, labels in sample.labels.items():
        known.set_labels(namespace, labels)
    value = sample.document.value
    if value["kind"] == "AdmissionReview":
        request = value["request"]
        old = request.get("oldObject", request["object"])
        return _as_written(engine, known, request["object"], old)
    if sample.is_written:
        return _as_written(engine, known, value, patched=sample.patched)
    try:
        found = ManifestJudge(engine, known, "default", NOW)(sample.document)
    except DocumentError as error:
        return str(error)
    if found.verdict in ("unmatched", "mutated"):
        return "allowed"
    if found.verdict == "error":
        return f"error {found.findings[0]}"
    return found.verdict


def _as_written(
    engine: Engine,
    known: Known,
    object: dict[str, Any],
    old: dict[str, Any] | None = None,
    patched: Document | None = None,
) -> str:
    namespace = (object.get("metadata") or {}).get("namespace", "default")
    if is_cluster_scoped(object["kind"]):
        namespace = ""
    group = object["apiVersion"].rpartition("/")[0]
    kinds = (target.kind for each in engine.policies for target in each.policy.targets)
    plurals = {(kind.group, kind.kind): kind.plural for kind in kinds}
    resource = plurals.get((group, object["kind"]), "")
    where = reviewed_namespace(object, namespace)
    operation = "UPDATE" if old else "CREATE"
    admission = Admission(object, old, operation, where, resource=resource)
    looked_up = {NOW_LOOK_UP: NOW, **known.about(namespace)}
    if patched is not None:
        made = ask(engine, admission, looked_up).object
        return "allowed" if _has(made, patched.value) else "changed otherwise"
    request = read(review(admission)).with_looked_up(looked_up)
    return "allowed" if engine.validate(request).allowed else "denied"


def kyverno(checkout: Path) -> Iterator[tuple[str, Counter[str], Any, list[Sample]]]:
    """Yield folder, counts, converted policies (None: not converted) and samples."""
    definitions = [
        each
        for path in checkout.rglob("*.yaml")
        for each in _read(path)
        if each.value.get("kind") == "CustomResourceDefinition"
    ]
    for folder in sorted(
        {path.parent.parent for name in TESTS for path in checkout.rglob(f"{name}/*.yaml")}
    ):
        documents = [each for path in sorted(folder.glob("*.yaml")) for each in _read(path)]
        result = migrate([*documents, *definitions])
        area = folder.relative_to(checkout).parts[0]
        unconverted = {(_name(e.origin.document), e.origin.rule) for e in result.unconverted}
        counted = Counter(converted=len(result.converted),
                          rules=len(result.converted) + len(result.unconverted))  # fmt: skip
        yield area, counted, (), []
        by_rule = defaultdict(list)
        for each in result.converted:
            by_rule[_name(each.origin.document), each.origin.rule].append(each)
        yield from _tested(folder, area, by_rule)
        if not unconverted and result.converted:
            yield area, Counter(), result.converted, list(_applied(folder))


def _tested(
    folder: Path, area: str, by_rule: dict[tuple[str, str], list[ConvertedPolicy]]
) -> Iterator[tuple[str, Counter[str], Any, list[Sample]]]:
    for path in sorted(folder.glob(".kyverno-test*/kyverno-test.yaml")):
        test = _read(path)[0].value
        files = [path.parent / each for each in test.get("resources", ())]
        objects = [each for file in files if file.exists() for each in _read(file)]
        labels, is_special = _values(path.parent / str(test.get("variables", "")))
        if test.get("userinfo") or is_special:
            continue
        for row in test.get("results", ()):
            rule = str(row.get("rule", "")).removeprefix("autogen-").removeprefix("cronjob-")
            policies = by_rule.get((row["policy"].rpartition("/")[2], rule))
            samples = [
                Sample(
                    f"{path}: {row['policy']} {rule}: {row.get('kind')} {name}",
                    each,
                    row["result"] == "fail",
                    objects,
                    labels,
                    is_written=True,
                    patched=_same(each, _read(path.parent / row.get("patchedResources", ""))),
                )
                for name in row.get("resources", ())
                for each in objects
                if _named(each, name)
                and each.value.get("kind") == row.get("kind", each.value.get("kind"))
            ]
            samples = [each for each in samples if not each.where.endswith(DISPUTED)]
            is_change = "patchedResources" in row
            if "generatedResource" not in row and not (is_change and row["result"] == "fail"):
                yield area, Counter(), policies, samples


def _applied(folder: Path) -> Iterator[Sample]:
    seen = set()
    for path in sorted(folder.glob(".chainsaw-test/chainsaw-test.yaml")):
        for step in (_read(path)[0].value["spec"].get("steps")) or ():
            for action in step.get("try", ()):
                applied = action.get("apply") or action.get("create")
                if not applied or "/" in applied.get("file", "/"):
                    continue
                is_denied = any(each["check"].get(ERROR) for each in applied.get("expect") or ())
                for each in _read(path.parent / applied["file"]):
                    title = f"{each.value['kind']} {_name(each)}"
                    where = f"{path.parent / applied['file']}: {title}"
                    # The second of a name is an update; only creations are judged here.
                    if title in seen or where.endswith(DISPUTED):
                        continue
                    seen |= set() if is_denied else {title}
                    yield Sample(where, each, is_denied)


def _values(path: Path) -> tuple[dict[str, dict[str, str]], bool]:
    """Return labels of namespaces, and whether the values say more about requests."""
    if not path.is_file():
        return {}, False
    value = next(iter(_read(path)), Document.of_object({})).value
    value = value.get("spec", value)
    labels = {each["name"]: each["labels"] for each in value.get("namespaceSelector") or ()}
    return labels, "request." in str(value.get("policies")) + str(value.get("globalValues"))


def gatekeeper(checkout: Path) -> Iterator[tuple[str, Counter[str], Any, list[Sample]]]:
    """Yield folder, counts, converted policies (None: not converted) and samples."""
    for suite in sorted(checkout.glob("library/*/*/suite.yaml")):
        area = suite.parent.parent.name
        for test in _read(suite)[0].value["tests"]:
            at = suite.parent
            documents = [*_read(at / test["template"]), *_read(at / test["constraint"])]
            result = migrate(documents)
            converted = result.converted if not result.unconverted else None
            counted = Counter(rules=1, converted=1 if converted else 0)
            samples = []
            for case in test["cases"]:
                beside = [e for name in case.get("inventory") or () for e in _read(at / name)]
                wanted = [each.get("violations", "yes") for each in case["assertions"]]
                is_denied = any(each not in ("no", False, 0) for each in wanted)
                for each in _read(at / case["object"]):
                    where = f"{at / case['object']} ({test['name']})"
                    if not where.endswith(DISPUTED):
                        samples.append(Sample(where, each, is_denied, beside))
            yield area, counted, converted, samples


def _has(made: Any, wanted: Any) -> bool:
    """Return whether an object has what is wanted, beside defaults and its namespace."""
    if isinstance(wanted, dict) and isinstance(made, dict):
        return all(_has(made.get(k), each) for k, each in wanted.items() if k != "namespace")
    if isinstance(wanted, list) and isinstance(made, list):
        return len(made) == len(wanted) and all(map(_has, made, wanted))
    return bool(made == wanted)


def _same(document: Document, others: Iterable[Document]) -> Document | None:
    """Return the document of the same kind and name."""
    wanted = document.value["kind"], _name(document)
    return next((e for e in others if (e.value.get("kind"), _name(e)) == wanted), None)


def _read(path: Path) -> list[Document]:
    try:
        return [
            replace(each, source=str(path))
            for each in read_documents(path)
            if is_object(each) or isinstance(each.value, dict)
        ]
    except DocumentError:
        return []


def _name(document: Document) -> str:
    return str((document.value.get("metadata") or {}).get("name", ""))


def _named(document: Document, name: str) -> bool:
    namespace = (document.value.get("metadata") or {}).get("namespace", "default")
    return name in (_name(document), f"{namespace}/{_name(document)}")


if __name__ == "__main__":
    sys.exit(main())
