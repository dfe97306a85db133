"""Reports to render: one with every sort of result, and a large one."""

from gatewright.outputs import (
    Ending,
    InputProblem,
    PolicyInfo,
    Report,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
)

REPLICAS = ReportedViolation(
    policy="replica-limits",
    message="spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less.",
    path="spec.replicas",
    place=SourceLocation("app/shop, 1.yaml", 8, 3),
    category="capacity",
    found="11",
    rule="production workloads cannot exceed 10 replicas",
    fix="set it to 10 or less",
)
IMAGE = ReportedViolation(
    policy="image-registries",
    message='spec.template.spec.containers[name=<app>].image: "a|b" & 100%; images must come from there. Push it.',
    level="warning",
    action="Warn",
    path="spec.template.spec.containers[name=<app>].image",
    place=SourceLocation("app/shop, 1.yaml", 19, 11),
    severity="high",
    category="images",
)
PROBE = ReportedViolation(
    policy="probes",
    message="readinessProbe missing\x07.",
    level="note",
    action="Audit",
    severity="low",
)
SHOP = SubjectResult(
    kind="Deployment",
    namespace="production",
    name="shop",
    verdict="denied",
    place=SourceLocation("app/shop, 1.yaml", 3, 1),
    violations=(REPLICAS, IMAGE),
)
WEB = SubjectResult(
    kind="WebApp",
    namespace="production",
    name="web",
    verdict="mutated",
    place=SourceLocation("app/web.yaml", 1, 1),
    operations=({"op": "add", "path": "/spec/a", "value": {"b": 1}},),
)
LIVE = SubjectResult(
    kind="Pod", namespace="lab", name="job-1", verdict="audited", violations=(PROBE,)
)
SETTINGS = SubjectResult(
    kind="ConfigMap",
    namespace="lab",
    name="settings",
    verdict="unmatched",
    place=SourceLocation("c.yaml", 1, 1),
)
REPORT = Report(
    "check",
    (SHOP, WEB, LIVE, SETTINGS),
    (InputProblem("not YAML: a tab", SourceLocation("broken.yaml", 2, 1)),),
    ("values.yaml: skipped",),
    {
        "replica-limits": PolicyInfo(
            "replica-limits", "Few replicas.", "Few replicas.\n\nWhy: nodes.", "medium", "capacity"
        ),
        "image-registries": PolicyInfo(
            "image-registries", "Known <images>.", "Known <images>.", "high", "images"
        ),
    },
    (
        Ending(
            ("replica-limits",),
            "2026-12-01T00:00:00Z",
            "sale <now>",
            SourceLocation("p.yaml", 7, 1),
        ),
    ),
)
EMPTY = Report("check")


def large(number: int) -> Report:
    """A report of one object for each violation, in ten namespaces."""
    return Report(
        "check",
        tuple(
            SubjectResult(
                kind="Deployment",
                namespace=f"team-{index % 10}",
                name=f"shop-{index}",
                verdict="denied",
                place=SourceLocation(f"app/{index}.yaml", 1, 1),
                violations=(REPLICAS,),
            )
            for index in range(number)
        ),
        policies=REPORT.policies,
    )
