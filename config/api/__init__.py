"""The API types: a pydantic model for each custom resource, from which its CRD is generated.

`meta` has what all kinds share, `definition` the parts of a CRD other than its schema, `core`
Kubernetes' own types, `formats` the formats of text fields. `policy`, `match` and `rules` are
Gatewright's policy objects, `policy_exception` exceptions from them, `admission` Kubernetes' own
policies. Each other kind has a module of its name; `components` and `storage` have types that
several kinds share.
"""
