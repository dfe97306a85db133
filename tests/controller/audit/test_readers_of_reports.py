"""Reports as other tools read them: by the Go types of openreports.io/v1alpha1 and wgpolicyk8s.io/v1alpha2."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from controller.audit.reports import ReportFormat, report, summarise_truncated
from controller.audit.results import ObjectResults, ReportResult
from controller.audit.violators import Violators
from tests.controlplane.fixtures import available
from tests.controlplane.gobuild import build

MODULE = Path(__file__).parents[2] / "controlplane" / "reports"
NOW = datetime(2026, 11, 1, tzinfo=UTC)
FINDINGS = (
    ReportResult(
        "few",
        "replica-limits",
        "spec.replicas",
        "spec.replicas: 30; too many.",
        "fail",
        "high",
        "capacity",
    ),
    ReportResult("own-rules", "", "", "no owner", "warn", "info", "general"),
    ReportResult(
        "budgets",
        "disruption-budgets",
        "",
        "cannot be decided",
        "error",
        "critical",
        "availability",
    ),
)


def _program() -> Path:
    return build(MODULE, ".", "reports", takes="a minute")


@pytest.fixture
def program(pytestconfig: pytest.Config) -> Path:
    """The program that reads reports by these types."""
    return available(pytestconfig, _program)


def as_written(format: ReportFormat) -> list[dict[str, Any]]:
    """The reports of an audit: for a namespaced object, for a cluster-scoped one, and for the limit of reports."""
    namespaced = ObjectResults("apps/v1", "Deployment", "web", "shop", "uid-shop", FINDINGS)
    cluster = ObjectResults("v1", "Namespace", "", "web", "uid-web", FINDINGS)
    violators = Violators(max_reports=1)
    violators.add(namespaced)
    violators.add(cluster)
    return [
        report(namespaced, format, NOW),
        report(cluster, format, NOW),
        report(summarise_truncated(violators, violators.worst), format, NOW),
    ]


@pytest.mark.controlplane
@pytest.mark.long
@pytest.mark.parametrize("format", ["openreports", "wgpolicyk8s"])
def test_every_field_is_read(program: Path, format: ReportFormat) -> None:
    """The types have every field, and a round trip changes none."""
    written = as_written(format)
    ended = subprocess.run(
        [program], input=b"\n".join(map(orjson.dumps, written)), capture_output=True, check=False
    )
    assert ended.stderr == b""
    read = [orjson.loads(line) for line in ended.stdout.splitlines()]
    for object in read:
        object["metadata"].pop("creationTimestamp", None)
    assert read == written
