"""The defaults of each environment equal the table in the docs page."""

from pathlib import Path

import pytest

from controller.reconcilers.tiers import TIERS
from kube.resource import JsonObject

PAGE = Path(__file__).parents[3] / "docs/kinds/ecommerceplatform.md"
INSTANCES = "database instances, storage"  # as many as a workload has replicas


def rows() -> dict[str, list[str]]:
    """The cells of each row of the page's table, in the order of the environments."""
    section = PAGE.read_text().partition("## Defaults by environment")[2]
    table = next(block for block in section.split("\n\n") if block.startswith("|"))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {name: rest for name, *rest in cells}


def shown(resources: JsonObject) -> str:
    """Requests and limits as the table writes them."""
    return "; ".join(
        ", ".join(resources[part][name] for name in ("cpu", "memory"))
        for part in ("requests", "limits")
    )


@pytest.mark.parametrize("place", range(3))
def test_the_page_has_the_values_of_each_environment(place: int) -> None:
    """Each cell of the environment's column on the page is right."""
    table = rows()
    tier = TIERS[table[""][place]]
    assert {name: cells[place] for name, cells in table.items() if name not in ("", "---")} == {
        INSTANCES: f"{tier.replicas}, {tier.storage}",
        "backups": "`0 2 * * *`, kept 30d" if tier.backup else "none",
        "replicas of backend and frontend": str(tier.replicas),
        "their requests; limits": shown(tier.workload),
        "cache: requests; limits": shown(tier.cache),
        "database: requests; limits": shown(tier.database),
        "queue: requests; limits": shown(tier.queue),
        "queue, storage": tier.queue_storage,
        "security context": "restricted",
        "pods of a workload on different nodes, PodDisruptionBudget, alerts": "yes"
        if tier.spread
        else "",
    }
    assert tier.alerts is tier.spread
