"""The controller: runs custom resources, and registers the webhook.

`runtime` is a controller runtime after controller-runtime; it knows no kind. `reconcilers` has the
kinds, each as a pure plan. `registration` maintains certificates, webhook configurations and the
status of policy objects. `audit` judges existing objects. `rights` has the RBAC rules for a kind.
"""
