"""Converts policies of Kyverno, Gatekeeper and Pod Security to policy objects. Pure.

`kyverno` converts rules (`selection` their match, `patterns` their patterns and `conditions` their
conditions, to CEL that `celtext` writes; `known` has the rules that built-in policies replace),
`cel_policies` rules that are CEL already, `gatekeeper` constraints (`constraints` is the table),
`exemptions` exceptions. `conversion` runs them all, and `writing` writes the files.
"""

from gatewright.migrate.conversion import migrate

__all__ = ["migrate"]
