"""The policy sets that Gatewright runs with: production, security-defaults, and more."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.cluster import ROOT

FORCE = """  match:
    any:
      - namespaces: [production]
      - namespaceSelector: {matchLabels: {environment: production}}
"""
MORE = (  # policies that allow the benchmark's Deployment with their default parameters
    "app-armor",
    "container-counts",
    "empty-dir-size",
    "flex-volume-drivers",
    "host-namespaces",
    "host-path-volumes",
    "host-ports",
    "host-probes",
    "image-tags",
    "interactive-containers",
    "memory-units",
    "privileged-containers",
    "proc-mount",
    "run-as-user",
    "safe-to-evict",
    "selinux-options",
    "sysctls",
    "volume-types",
    "windows-host-process",
)
# Policies of the set that match a Deployment in production: three validate it, one mutates it.
MATCHING = 4


def write(directory: Path, *, matching: bool = False, loaded: int = 0) -> Path:
    """Write the set into `directory`, with all of MORE, or `loaded` by other namespaces."""
    directory.mkdir()
    (directory / "production.yaml").write_text(
        (ROOT / "config/policies/production.yaml").read_text()
    )
    (directory / "more.yaml").write_text(
        "---\n".join(_more(matching=matching, others=loaded - MATCHING))
    )
    return directory


def _more(*, matching: bool, others: int) -> Iterator[str]:
    yield _policy("security-defaults", "security-defaults", FORCE)
    for name in MORE if matching else ():
        yield _policy(name, name, FORCE)
    for number in range(others):
        match = f"  match: {{any: [{{namespaces: [tenant-{number}]}}]}}\n"
        yield _policy(
            f"tenant-{number}",
            "replica-limits",
            f"  params: {{maximum: {number % 50 + 1}}}\n{match}",
        )


def _policy(name: str, policy: str, more: str) -> str:
    head = (
        f"apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {{name: "
        f"{name}}}\n"
    )
    return f"{head}spec:\n  policy: {policy}\n{more}"
