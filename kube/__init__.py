"""Access to the API server: verbs and paths, no kinds.

`resource` defines resources and their paths, and is pure. `credentials` finds the API server: by a
`kubeconfig` and its `plugins`, or by the pod's service account; the result is an `endpoint`.
`session` and `transport` send requests to it, `discovery` finds its resources, `client` has the
verbs of the API, and `errors` the typed errors. `watch` keeps a `store` equal to the API server,
with `backoff` after failures; an `index` of the store finds objects by a value, and a `budget`
limits the objects that were not requested. `page` is one page of a list, and `watched` is one
object that is watched by name. `loop` is the event loop of all processes.
"""
