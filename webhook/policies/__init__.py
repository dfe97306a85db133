"""The built-in policies, one per module: parameters, a pure function, and POLICY.

A module's docstring is its page in docs/policies. Modules whose names begin with `_` are shared.
"""
