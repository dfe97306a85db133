"""Policies as objects of a cluster with two webhooks: in force, changed, with exceptions, audited."""
