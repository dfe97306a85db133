"""Certificates, registration and conversion, on an in-memory API server.

`sending` decides as the API server does whether a request is sent to a webhook. test_outage uses a real API server.
"""
