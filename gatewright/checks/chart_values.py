"""Find the line of a chart's value that a template copies unchanged."""

import re
from collections.abc import Sequence
from pathlib import Path

from config.documents import Document, read_documents, readable_documents
from config.positions import Position
from gatewright.checks.origin_files import value_below
from gatewright.console.chart_options import ChartOptions

# An action that is a whole value: it writes a chart value, or a whole part of the values.
ACTION = re.compile(
    r"[\"']?\{\{-? *(?:toYaml +)?(?P<values>\$?\.Values\.[\w.]+|\.)"
    r"(?: *\| *(?:quote|squote|int|toString|toYaml|n?indent +\d+))* *-?\}\}[\"']?"
)
WITH = re.compile(r"\s*\{\{-? *with +(\$?\.Values\.[\w.]+) *-?\}\}\s*")


def values_path(action: str, above: str) -> str:
    """Return the path of the chart value that an action copies; "" for any other action.

    `above` is the line before the key; if it is a `with`, a dot in the action means its value.
    """
    found = ACTION.fullmatch(action)
    name = found["values"] if found else ""
    if name == ".":
        scope = WITH.fullmatch(above)
        name = scope[1] if scope else ""
    return name.removeprefix("$").removeprefix(".Values.")


class ChartValues:
    """The values files that a chart is rendered with; the last file with a field wins."""

    def __init__(self, chart: Path, options: ChartOptions) -> None:
        """Read the files; an unreadable one, or document of one, counts as empty."""
        self._documents: list[Document] = []
        for file in (chart / "values.yaml", *map(Path, options.values)):
            self._documents += readable_documents(read_documents(file))[0]
        self._set = [key for each in options.set for key in re.findall(r"(?:^|,)([\w.]+)", each)]

    def find(self, path: str, rest: Sequence[str]) -> tuple[str, Position] | None:
        """Return file and position of the value at `path`, or of its field nearest to `rest`.

        Return None if no file has the value, or if --set replaces a part of it.
        """
        for set_path in self._set:
            if f"{set_path}.".startswith(f"{path}.") or f"{path}.".startswith(f"{set_path}."):
                return None
        below = "".join(each if each.startswith("[") else f".{each}" for each in rest)
        for document in reversed(self._documents):
            value = document.value
            for step in path.split("."):
                value = value_below(value, step)
            if value is not None:
                return document.source, document.place(path + below)
        return None
