"""Access to the API server: verbs and paths, no kinds.

`resource` says what a resource is, and is pure. `credentials` finds the API server: by a
`kubeconfig`, by `plugins` of one, or by the pod's service account; the result is an `endpoint`.
`session` and `transport` send requests to it, `discovery` knows what it serves, `client` has the
verbs of the API, and `errors` the typed failures. `watch` keeps a `store` equal to the API server,
with `backoff` after failures; an `index` of it finds objects by a value. `page` is one decoded
List, `metadata` leaves out what has a wrong type there, and `watched` is one object that is watched
by name. `loop` is the event loop of all processes.
"""
