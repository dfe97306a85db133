"""Certificates, registration and statuses: what the leader writes for the webhook.

The webhook itself has no write rights. `rotation` decides when certificates are issued, and
`certificates` reconciles their Secrets. `demands` computes which requests the policies must see, in
which namespaces (`scope`); `calls` turns that into selectors and match conditions, `configurations`
into the webhook configurations, and `registrar` writes them once `probe` gets an answer from a
webhook. `conversion` does the same for CRDs; both derive from `upkeep`. `policy_statuses` writes
the status of policy objects.
"""
