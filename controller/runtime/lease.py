"""The Lease object as leader election writes it: values in, values out."""

import math
from datetime import datetime
from typing import Any

from controller.runtime.moments import micro_time
from kube.resource import Resource

LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease")

Object = dict[str, Any]


def new(metadata: Object) -> Object:
    """Return a lease that nobody ever had."""
    return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata}


def holder_of(lease: Object) -> str:
    """Return who has a lease; empty for nobody."""
    return str(spec_of(lease).get("holderIdentity") or "")


def duration_of(lease: Object, otherwise: float) -> float:
    """Return for how many seconds a lease is respected after it last changed."""
    return float(spec_of(lease).get("leaseDurationSeconds") or otherwise)


def spec_of(lease: Object) -> Object:
    """Return a lease's spec, which somebody may have made without one."""
    return lease.get("spec") or {}


def claimed(lease: Object, identity: str, duration: float, now: datetime) -> Object:
    """Return a lease as its holder writes it: taken now, or renewed if it was theirs already."""
    old = spec_of(lease)
    is_ours = holder_of(lease) == identity
    taken_over = bool(old) and not is_ours
    spec = {
        **old,
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(duration),
        "acquireTime": old.get("acquireTime") if is_ours else micro_time(now),
        "renewTime": micro_time(now),
        "leaseTransitions": (old.get("leaseTransitions") or 0) + taken_over,
    }
    return {**lease, "spec": spec}


def released(lease: Object, now: datetime) -> Object:
    """Return a lease that the next who comes may take."""
    spec = {**spec_of(lease), "holderIdentity": None, "leaseDurationSeconds": 1, "renewTime": micro_time(now)}
    return {**lease, "spec": spec}
