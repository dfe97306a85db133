"""The Helm chart as helm renders it: objects, values, hooks, notes and rights.

What an installation does is in tests/e2e, and in tests/node on a real node.
"""
