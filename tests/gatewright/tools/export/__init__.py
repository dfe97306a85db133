"""Policy sets as Kubernetes' own admission policies."""
