"""Plan what the controller would create.

`children` plans the children of manifests, and `differences` compares plans with a cluster.
"""
