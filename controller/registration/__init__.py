"""What the leader does for the webhook, which has no write rights.

`rotation` decides when certificates are issued, `certificates` reconciles their Secrets. `demands`
is what policies need to be asked about, in the namespaces of a `scope`; `calls` makes conditions of
it and `configurations` the webhook configurations, which `registrar` writes once `probe` sees a
webhook answer. `conversion` does the same for CRDs; both are an `upkeep`. `policy_statuses` writes
the status of policy objects.
"""
