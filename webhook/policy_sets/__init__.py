"""Policy sets: what people write about policies, and how it comes into force. Pure.

`policy_set` reads the documents of a set, `bound_objects` each object, `policy_objects` those of a
cluster, and `catalogue` has the policies that they name. Rules in CEL are compiled by `expressions`
(`validations` has one of them); `rules` makes a policy of them, with `rule_resources` for its
resources (`kind_names` knows how these are spelled) and `mutations` for what it sets (`apply`
merges as server-side apply does); `cel_request` is the request as expressions see it.
`admission_policies` and `admission_match` are Kubernetes' own policies.
"""
