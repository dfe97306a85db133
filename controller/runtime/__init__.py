"""The controller runtime, with controller-runtime's semantics and names. It knows no kind.

`kind`, `plan` and `types` have the declarations and results of kinds. `manager` runs controllers:
`sources` turn changes of a `cache`, whose `cache_filter` drops other people's objects, into
requests in a `workqueue`, from which a `controller` takes them. `reconciler` handles one request:
it reads the `observed` state, plans, executes the plan (`apply` sends each `child` after a check of
`ownership`, and `changes` says what it changed), and the `status_writer` writes the `status`.
`diff`, which knows `list_keys`, and `applied` find the differences that an apply would repair,
`conflict_backoff` limits repairs while another of the `writers` reverts them, and `expectations`
waits until the caches have the controller's own writes. `explanations` reads, seldom, why children
are not ready, by the rules of `obstacles`. `leader` is the election, and `installations` finds
other ones; `events`, `metrics` and `health` report to users. `hand_written` has the writes of
hand-written controllers.
"""
