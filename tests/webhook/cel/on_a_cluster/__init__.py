"""A corpus of expressions, with the same verdicts and messages as on a real API server."""
