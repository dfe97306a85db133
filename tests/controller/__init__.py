"""The controller: on an API server in memory, and on a real one (`*_on_a_cluster`).

`runtime` tests the runtime with a kind for tests, `reconcilers` the plan of each kind, `registration` and `audit`
those packages, and `properties` the guarantees that hold for any order of events.
"""
