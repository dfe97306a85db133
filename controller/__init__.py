"""The controller: runs custom resources, and registers the webhook.

`runtime` is a controller runtime after controller-runtime; it knows no kind. `reconcilers` has the
kinds, each as a pure plan. `registration` looks after certificates, webhook configurations and the
status of policy objects. `audit` judges what exists. `rights` are the RBAC rules for a kind.
`fake_apiserver` is an API server in memory, for tests and the public test kit.
"""
