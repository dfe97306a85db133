"""Write a migration: a file for each source, and the list of unconverted rules."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from config.printable import printable
from gatewright.outputs import write_file
from gatewright.outputs.markdown import escape_markdown
from gatewright.outputs.yaml_text import to_yaml
from gatewright.tools.migrate.conversion import Migration
from gatewright.tools.migrate.results import ConvertedPolicy, Unconverted, slug
from webhook.messages import count_noun

REPORT = "not-converted.md"


def files_of(migration: Migration) -> dict[str, str]:
    """Return the contents of the files by name."""
    files: dict[str, str] = {}
    ordered = sorted(migration.converted, key=_file)
    for name, objects in groupby(ordered, _file):
        files[name] = "---\n".join(map(_text, objects))
    files[REPORT] = "\n".join(_report(migration)) + "\n"
    return files


def others(migration: Migration) -> str:
    """Return the kinds of objects that are no policies, each with its number."""
    return ", ".join(
        f"{number} {printable(kind)}" for kind, number in sorted(migration.others.items())
    )


def write_files(files: dict[str, str], directory: Path) -> None:
    """Write the files to a directory, which is created if it does not exist."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_file(directory / name, text)


def _file(each: ConvertedPolicy) -> str:
    value = each.origin.document.value
    if each.name.startswith("pod-security-") and value["kind"] == "Namespace":
        return "pod-security.yaml"
    metadata = value["metadata"]
    parts = [value["kind"], metadata.get("namespace", ""), metadata["name"]]
    return f"{slug('-'.join(filter(None, parts)))[:200]}.yaml"


def _text(each: ConvertedPolicy) -> str:
    lines = [each.title] if each.title else []
    lines += [f"From {each.origin.title} ({each.origin.document.where()})", *each.notes]
    comment = "".join(f"# {printable(line)}\n" for line in lines)
    return comment + to_yaml(each.object)


def _report(migration: Migration) -> Iterator[str]:
    yield f"# {count_noun(len(migration.unconverted), 'rule')} not converted\n"
    yield f"Converted: {count_noun(len(migration.converted), 'object')}, in the other files.\n"
    if migration.others:
        yield f"No policies, so not converted: {escape_markdown(others(migration))}.\n"
    yield from _counts(migration.unconverted)
    yield from _table("No policy is known to decide the same:", migration.unconverted)
    yield from _table("Skipped, because they could not be read as policies:", migration.skipped)


def _counts(rows: Sequence[Unconverted]) -> Iterator[str]:
    """Yield the number of rules for each reason, the most frequent first."""
    if not rows:
        return
    yield "| rules | reason | nearest |\n| --- | --- | --- |"
    nearest: dict[str, dict[str, None]] = {}
    for row in rows:
        nearest.setdefault(row.sort, {})[row.nearest] = None
    for sort, number in Counter(each.sort for each in rows).most_common():
        words = list(nearest[sort])
        yield _row(str(number), sort, words[0] if len(words) == 1 else "")
    yield ""


def _row(*cells: str) -> str:
    return "| " + " | ".join(escape_markdown(printable(cell)) for cell in cells) + " |"


def _table(title: str, rows: Sequence[Unconverted]) -> Iterator[str]:
    if not rows:
        return
    yield f"{title}\n\n| what | reason | nearest |\n| --- | --- | --- |"
    for row in rows:
        cells = (f"{row.origin.title} ({row.origin.document.where()})", row.reason, row.nearest)
        yield _row(*cells)
    yield ""
