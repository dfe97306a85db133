"""Convert policies of Kyverno, Gatekeeper and Pod Security to policy objects. Pure.

`conversion` gives each document, or rule of a document, to the converter of its kind, with the
`context` of the other documents, and collects `results`; `writing` writes the files.

- Kyverno: `kyverno` converts a rule. `filters` reads its match, which `selection` converts;
  `rule_tests` converts its tests, by `patterns` with `scalars` and by `conditions` with `paths`,
  and `container_rules` splits them by list of containers; `builtin` finds a built-in policy that
  decides the same. `cel_policies` converts policies in CEL, and `exceptions` exceptions.
- Gatekeeper: `gatekeeper` converts constraints; where their template is in Rego, by the functions
  of `constraints` with `library_rules`. `mutators` converts mutators.
- Pod Security: `pod_security` converts labels of namespaces.

`cel_text` beside this package writes CEL, `cel_rules` adapts CEL that others wrote, `mutations`
writes mutations, `known_fields` refuses what no converter knows, `conflicts` leaves out mutations
that conflict, `kinds` translates names of kinds, and `other_libraries` is the table of other
libraries' policies.
"""

from gatewright.tools.migrate.conversion import migrate

__all__ = ["migrate"]
