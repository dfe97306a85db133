"""Policy sets: reads policy objects and exceptions, and turns them into policies in force. Pure.

`policy_set` reads the documents of a set, `bound_objects` each object, and `catalogue` has the
policies that they name. `policy_objects` is the policy that validates policy objects in a cluster,
`mutation_effects` the one that warns of mutations without effect, and `rule_type_warnings` the one
that warns of the type errors that `rule_types` finds.
`rules` turns CEL rules into a policy (`compiled_rules`): `expressions`, `validations` compile them,
`rule_resources` finds the resources that they judge (`kind_names` parses the names of kinds, and
compares them with those that are served), `cel_request` provides the CEL variables, and `mutations`
applies their changes (`apply` merges as server-side apply does, `json_patch` patches as the API
server does). `clause_faults` finds clauses of a `match` that match nothing.
`admission_policies` and `admission_match` read Kubernetes' own policies.
"""
