"""Record verdicts of Gatekeeper for the tests, which compare the conversions with them.

    python -m benchmarks.migrations.record_gator CHECKOUT

writes the newest template in Rego alone of each kind that is converted, and Gatekeeper's verdicts
on random objects, to tests/gatewright/tools/migrate/gatekeeper_recorded.yaml.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from gatewright.outputs.yaml_text import to_yaml
from gatewright.tools.migrate.constraints import CONSTRAINTS
from gatewright.tools.migrate.gatekeeper import CEL_ENGINE
from tests.gatewright.tools.migrate.constraint_cases import RECORDED, case_of, compare

SEEDS = range(40)
MOST = 6  # constraints of each kind


def main() -> None:
    """Write the file."""
    newest: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(sys.argv[1]).glob("artifacthub/library/*/*/*/template.yaml")):
        template = yaml.safe_load(path.read_text())
        kind = template["spec"]["crd"]["spec"]["names"]["kind"]
        if kind in CONSTRAINTS and CEL_ENGINE not in str(template["spec"]["targets"]):
            newest[kind] = template
    found = {}
    for kind, template in sorted(newest.items()):
        verdicts = dict[int, str]()
        cases = (case_of(template, seed) for seed in SEEDS)
        for seed, (_, (ours, theirs)) in enumerate(compare(cases)):
            if not isinstance(ours, str) and not isinstance(theirs, str) and len(verdicts) < MOST:
                verdicts[seed] = "".join("d" if each else "a" for each in theirs)
        template["metadata"] = {"name": template["metadata"]["name"]}
        found[kind] = {"template": template, "verdicts": verdicts}
    RECORDED.write_text(to_yaml(found))


if __name__ == "__main__":
    main()
