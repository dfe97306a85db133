"""The Helm chart as helm renders it: objects, values, hooks, notes and rights.

tests/e2e and tests/node test installations.
"""
