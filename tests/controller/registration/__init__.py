"""Certificates, registration and conversion, on an API server in memory.

`sending` decides as the API server does whether it calls a webhook. test_outage asks a real one.
"""
