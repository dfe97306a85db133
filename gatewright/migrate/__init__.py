"""Convert policies of Kyverno, Gatekeeper and Pod Security to policy objects. Pure.

`kyverno` converts a rule: `selection` converts its match, and `rule_tests` its tests, by `patterns`
with their `scalars` and by `conditions` with their `paths`; `celtext` writes the CEL. `builtin`
maps rules to equivalent built-in policies, `mutations` writes mutations, and `cel_rules` adapts
rules that are written in CEL. `cel_policies` converts Kyverno's policies in CEL, `gatekeeper`
Gatekeeper's constraints by the table of `constraints`, `mutators` its mutators, `exceptions`
Kyverno's exceptions, and `pod_security` labels of namespaces. `kinds` translates names of kinds,
`elsewhere` is the table of policy libraries, `conversion` runs all conversions and collects
`results`, and `writing` writes the files.
"""

from gatewright.migrate.conversion import migrate

__all__ = ["migrate"]
