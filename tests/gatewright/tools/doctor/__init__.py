"""doctor: findings as tables of objects, and each prediction provoked on the real API server."""
