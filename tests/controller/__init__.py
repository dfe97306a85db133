"""The controller: on an API server in memory, and on a real one (`*_on_a_cluster`).

`runtime` tests the runtime with a kind of its own, `reconcilers` the plan of each kind,
`registration` and `audit` those packages, and `properties` what holds in any order of events.
"""
