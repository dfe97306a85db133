"""Find problems in a cluster's admission, Gatewright's or not. Pure, except `loading`.

`models` and `workloads` have the objects as they are read, `state` finds them by name. `calls`
decides whether a webhook is called for a request, `needs` has the requests that a cluster must get.
Each of `deadlocks`, `backends`, `bundles`, `timeouts`, `webhooks` and `policies` yields `hazards`;
`diagnosis` runs them all. `loading` reads a cluster, and `reporting` turns them into the report of
all output formats.
"""

from gatewright.doctor.diagnosis import diagnose
from gatewright.doctor.hazards import Hazard

__all__ = ["Hazard", "diagnose"]
