"""The audit: judges what exists in the cluster by the policies in force, and reports violations.

`audit` is the loop. `listing` reads collections page by page, `inventory` what planners and
policies look up, `kubernetes_policies` Kubernetes' own policies. `judge` judges an object, `images`
verifies its images; `results` is what that yields, `reports` which reports to write, `metrics` what
Prometheus sees.
"""
