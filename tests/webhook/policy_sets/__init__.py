"""Policy objects, CEL rules, Kubernetes' own policies and the catalogue, from text to verdict."""
