"""Sends the cases of policies to a real API server that calls the real webhook."""
