"""Cases of policies, put to a real API server that asks the real webhook."""
