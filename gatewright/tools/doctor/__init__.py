"""Find problems in a cluster's admission, Gatewright's or not. Pure, except `loading`.

`models` and `foreign` define the objects that are read, and `state` finds them by name. `calls`
decides whether a webhook is called for a request, `sequences` which ones are called for the same
request; `needs` lists the requests that must not fail, `callers` the servers that are called, and
`issuers` says who renews their certificates. Each of `deadlocks`, `backends`, `bundles`,
`timeouts`, `webhooks` and `policies` yields `hazards`; `diagnosis` runs them all, and
`unjudged` yields what they could not judge. `loading` reads a
cluster, and `reporting` turns the hazards into the report of all output formats.
"""

from gatewright.tools.doctor.diagnosis import diagnose
from gatewright.tools.doctor.hazards import Hazard

__all__ = ["Hazard", "diagnose"]
