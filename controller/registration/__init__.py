"""Certificates, registration and statuses: what the leader writes for the webhook.

The webhook itself has no write rights. `rotation` decides when certificates are issued, and
`certificates` reconciles their Secrets. `demands` computes which requests policies must see, in
which namespaces (`scope`). `grouping` divides those of the platform among webhooks, and `tenants`
adds those of tenants, with a `narrowing` of each kind to its namespaces. `calls` turns both into
selectors and match conditions, `configurations` into the webhook configurations, and `registrar`
writes and counts (`metrics`) them once `probe` gets an answer from a webhook. `forecast` predicts
for the webhook what a policy would change. `conversion` does for CRDs what `registrar` does; both
derive from `upkeep`. `policy_statuses` writes the status of policy objects, and `refused_policies`
events about the ConfigMap of policies. `enforcement` measures whether the API server denies what
policies deny; `enforcement_requests` finds its dry runs, `enforcement_answers` judges their
answers, and `enforcement_ways` concludes from them for policies that wait for their turn.
"""
