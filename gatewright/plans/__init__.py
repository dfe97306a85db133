"""Plan what the controller would create.

`planners` wraps the planners for the engine, `children` plans the children of manifests, and
`differences` compares plans with a cluster.
"""
