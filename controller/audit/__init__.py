"""The audit: judges existing objects by the policies in force, and reports violations.

`audit` is the loop. `listing` lists collections page by page, `inventory` lists the objects to
judge and the look-ups, and `kubernetes_policies` reads Kubernetes' own policies. `judge` judges an
object, and `images` verifies its images. `results` are the violations, `violators` counts them and
keeps the worst, `reports` decides which reports to write, and `metrics` has the gauges.
"""
