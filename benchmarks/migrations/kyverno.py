"""The rules and samples of kyverno/policies."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.migrations.samples import DISPUTED, Sample, name_of, read_file
from config.documents import Document
from gatewright.tools.migrate import migrate
from gatewright.tools.migrate.results import ConvertedPolicy

TESTS = (".kyverno-test", ".chainsaw-test")
ERROR = "($error != null)"


def kyverno(checkout: Path) -> Iterator[tuple[str, Counter[str], Any, list[Sample]]]:
    """Yield folder, counts, converted policies (None: not converted) and samples."""
    definitions = [
        each
        for path in checkout.rglob("*.yaml")
        for each in read_file(path)
        if each.value.get("kind") == "CustomResourceDefinition"
    ]
    for folder in sorted(
        {path.parent.parent for name in TESTS for path in checkout.rglob(f"{name}/*.yaml")}
    ):
        documents = [each for path in sorted(folder.glob("*.yaml")) for each in read_file(path)]
        result = migrate([*documents, *definitions])
        area = folder.relative_to(checkout).parts[0]
        unconverted = {(name_of(e.origin.document), e.origin.rule) for e in result.unconverted}
        counted = Counter(converted=len(result.converted),
                          rules=len(result.converted) + len(result.unconverted))  # fmt: skip
        yield area, counted, (), []
        by_rule = defaultdict(list)
        for each in result.converted:
            by_rule[name_of(each.origin.document), each.origin.rule].append(each)
        yield from _tested(folder, area, by_rule)
        if not unconverted and result.converted:
            yield area, Counter(), result.converted, list(_applied(folder))


def _tested(
    folder: Path, area: str, by_rule: dict[tuple[str, str], list[ConvertedPolicy]]
) -> Iterator[tuple[str, Counter[str], Any, list[Sample]]]:
    for path in sorted(folder.glob(".kyverno-test*/kyverno-test.yaml")):
        test = read_file(path)[0].value
        files = [path.parent / each for each in test.get("resources", ())]
        objects = [each for file in files if file.exists() for each in read_file(file)]
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
                    patched=_same(each, read_file(path.parent / row.get("patchedResources", ""))),
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
        for step in (read_file(path)[0].value["spec"].get("steps")) or ():
            for action in step.get("try", ()):
                applied = action.get("apply") or action.get("create")
                if not applied or "/" in applied.get("file", "/"):
                    continue
                is_denied = any(each["check"].get(ERROR) for each in applied.get("expect") or ())
                for each in read_file(path.parent / applied["file"]):
                    title = f"{each.value['kind']} {name_of(each)}"
                    where = f"{path.parent / applied['file']}: {title}"
                    # The second sample of a name is an update; only creations are judged here.
                    if title in seen or where.endswith(DISPUTED):
                        continue
                    seen |= set() if is_denied else {title}
                    yield Sample(where, each, is_denied)


def _values(path: Path) -> tuple[dict[str, dict[str, str]], bool]:
    """Return labels of namespaces, and whether the values set more of the requests."""
    if not path.is_file():
        return {}, False
    value = next(iter(read_file(path)), Document.of_object({})).value
    value = value.get("spec", value)
    labels = {each["name"]: each["labels"] for each in value.get("namespaceSelector") or ()}
    return labels, "request." in str(value.get("policies")) + str(value.get("globalValues"))


def _same(document: Document, others: Iterable[Document]) -> Document | None:
    """Return the document of the same kind and name."""
    wanted = document.value["kind"], name_of(document)
    return next((e for e in others if (e.value.get("kind"), name_of(e)) == wanted), None)


def _named(document: Document, name: str) -> bool:
    namespace = (document.value.get("metadata") or {}).get("namespace", "default")
    return name in (name_of(document), f"{namespace}/{name_of(document)}")
