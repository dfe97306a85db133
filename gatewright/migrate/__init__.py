"""Converts policies of Kyverno, Gatekeeper and Pod Security to policy objects. Pure.

`kyverno` converts a rule: `selection` its match, `rule_tests` what it tests, by `patterns` with
their `scalars` and by `conditions` with their `paths`; `celtext` writes the CEL. `builtin` has
the rules that built-in policies decide alike, `mutations` writes changes, `cel_rules` adapts
rules that are CEL already. `cel_policies` converts Kyverno's policies in CEL, `gatekeeper`
constraints by the table of `constraints`, `mutators` its mutators, `exceptions` those of Kyverno,
`pod_security` labels of namespaces. `kinds` spells kinds, `elsewhere` is the table of libraries,
`conversion` runs them all with the `results`, and `writing` writes the files.
"""

from gatewright.migrate.conversion import migrate

__all__ = ["migrate"]
