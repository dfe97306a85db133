"""What the controller would create.

`planners` are for the engine, `children` are those of manifests, and
`differences` are those from a cluster.
"""
