"""Judge the samples of kyverno/policies and gatekeeper-library by converted policies."""
