"""The controller runtime, with controller-runtime's semantics and names. It knows no kind.

`kind`, `plan` and `types` are what kinds declare and return. `manager` runs controllers: `sources`
turn changes of a `cache` into requests in a `workqueue`, from which a `controller` takes them.
`reconciler` handles one: it reads `observed` state, plans, carries out the plan (`apply` sends each
`child` after a check of `ownership`), and writes the `status`. `diff` and `applied` say what an
apply would change, `conflict_backoff` when another writer insists, `expectations` what caches do
not show yet. `leader` is the election; `events`, `metrics` and `health` are for people.
"""
