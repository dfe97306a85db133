"""Reads the API server's audit log, for tests that count requests."""

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

WRITES = ("create", "update", "patch", "delete", "deletecollection")

# Log users and requests without bodies. Not logged: probes, the hollow kubelet, and the control plane's own reads.
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
  - level: None
    users: ["hollow-kubelet"]
  - level: None
    users: ["system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
    verbs: ["get", "list", "watch"]
  - level: None
    userGroups: ["system:serviceaccounts:kube-system"]
    verbs: ["get", "list", "watch"]
  - level: Metadata
"""


LONGEST_LINE = 1 << 22  # bytes


class AuditLog:
    """The JSON-lines file that one API server appends an event to for each request."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def size(self) -> int:
        """The offset after the last complete line: the API server may be writing another one."""
        if not self.path.exists():
            return 0
        with self.path.open("rb") as log:
            start = log.seek(max(0, log.seek(0, os.SEEK_END) - LONGEST_LINE))
            return start + log.read().rfind(b"\n") + 1

    def events(self, since: int, until: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield an audit.k8s.io Event for each request: for a watch at its start, for others at the response."""
        if not self.path.exists():
            return
        with self.path.open("rb") as log:
            log.seek(since)
            while until is None or log.tell() < until:
                line = log.readline()
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if event["stage"] == (
                    "ResponseStarted" if event["verb"] == "watch" else "ResponseComplete"
                ):
                    yield event


def matches(
    event: dict[str, Any],
    *,
    user: str | None = None,
    verb: str | Collection[str] | None = None,
    resource: str | None = None,
    namespace: str | None = None,
) -> bool:
    """Whether an event has this user, verb (or one of several), resource ("pods", "pods/status") and namespace."""
    about = event.get("objectRef", {})
    plural = about.get("resource")
    verbs = (verb,) if isinstance(verb, str) else verb
    return (
        (user is None or event["user"]["username"] == user)
        and (verbs is None or event["verb"] in verbs)
        and (resource is None or resource in {plural, f"{plural}/{about.get('subresource')}"})
        and (namespace is None or about.get("namespace") == namespace)
    )
